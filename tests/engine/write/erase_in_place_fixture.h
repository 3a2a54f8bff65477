// What the tests of ranges that erase rows in place share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"

namespace stride::test::erase_in_place_tests {

// Loads of some thousand rows make segments.
constexpr uint64_t small_memtable = 1 << 20;

inline std::string key_of(uint64_t i) {
  std::string key(8, '\0');
  for (size_t byte = 0; byte < 8; ++byte) key[7 - byte] = static_cast<char>(i >> 8 * byte);
  return key;
}

class EraseInPlaceTest {
 protected:
  void open(Options options = {}) {
    db_.reset();
    options.backend = BackendKind::host;
    options.file_system = &fs_;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    db_ = std::move(*db);
  }
  // Rows of keys [first, end), `step` apart.
  void load(const Table& table, uint64_t first, uint64_t end, uint64_t step = 1,
            const std::string& value = "12345678") {
    std::string keys, values;
    uint64_t rows = 0;
    for (uint64_t i = first; i < end; i += step, ++rows) {
      keys += key_of(i);
      values += value;
    }
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table, Column::fixed(keys.data(), 8, rows),
                     Column::fixed(values.data(), static_cast<uint32_t>(value.size()), rows)));
    REQUIRE_OK(t.commit());
  }
  void erase(const Table& table, uint64_t from, uint64_t to,
             Durability durability = Durability::sync) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.erase_range(table, as_bytes(key_of(from)), as_bytes(key_of(to))));
    REQUIRE_OK(t.commit(durability));
  }
  uint64_t segment_files() {
    auto names = *fs_.list("/db");
    return static_cast<uint64_t>(std::count_if(
        names.begin(), names.end(), [](const std::string& n) { return n.ends_with(".seg"); }));
  }
  TableStatistics statistics() { return db_->tables().front(); }

  MemoryFileSystem fs_{{.crashable = false}};
  std::unique_ptr<Database> db_;
};

}  // namespace stride::test::erase_in_place_tests
