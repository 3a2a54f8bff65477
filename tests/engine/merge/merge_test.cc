// Ordered reads over several runs that are large enough for windows, stretches and damage to
// matter.
#include <algorithm>
#include <functional>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

struct KeySet {
  const char* name;
  std::function<std::string(uint64_t)> make;  // ascending in its argument
};

std::string big_endian(uint64_t n, int bytes) {
  std::string s;
  for (int i = bytes - 1; i >= 0; --i) s += static_cast<char>(i < 8 ? n >> (8 * i) : 0);
  return s;
}

const KeySet key_sets[] = {
    {"fixed3", [](uint64_t n) { return big_endian(n, 3); }},
    {"fixed8", [](uint64_t n) { return big_endian(n << 40 | n, 8); }},
    {"fixed16", [](uint64_t n) { return big_endian(n, 16); }},
    {"fixed24", [](uint64_t n) { return big_endian(n / 3, 8) + big_endian(n % 3, 16); }},
    {"fixed40", [](uint64_t n) { return big_endian(n / 3, 8) + big_endian(n % 3, 32); }},
    {"prefixes", [](uint64_t n) { return "user:" + std::string(n % 40, 'x') + big_endian(n, 4); }},
    {"nested", [](uint64_t n) { return big_endian(n / 30, 2) + std::string(n % 30, '\0'); }},
    {"full",
     [](uint64_t n) {
       return std::string(8, '\xFF') + big_endian(n, 4) + std::string(n % 9, '\xFF');
     }},
};

class MergeTest {
 protected:
  const KeySet key_set_ = GENERATE(from_range(std::begin(key_sets), std::end(key_sets)));
  RunsWith name_{key_set_.name};

  static constexpr uint64_t key_count = 6000;

  MergeTest() { reopen(); }

  void reopen() {
    database_.reset();
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.file_system = &files_;
    options.memory_limit_bytes = 1;  // what is reopened is checked as it is read
    options.threads = 2;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t");
    REQUIRE_OK(table);
    table_ = *table;
  }

  // A run of the numbers that `belongs` picks of [0, rows); of each `erased`-th the erasure.
  void add_run(uint64_t rows, uint64_t erased, const std::function<bool(uint64_t)>& belongs) {
    Rows keys, values, gone;
    for (uint64_t n = 0; n < rows; ++n) {
      if (!belongs(n)) continue;
      std::string key = key_set_.make(n);
      if (erased && random_() % erased == 0) {
        gone.add(key);
        model_.erase(key);
      } else {
        std::string value(fixed_values_ ? 44 : random_() % 90, static_cast<char>(random_()));
        keys.add(key);
        values.add(value);
        model_[key] = value;
      }
    }
    WriteTransaction t = database_->begin();
    REQUIRE_OK(t.put(table_, keys.column(), values.column()));
    REQUIRE_OK(t.erase(table_, gone.column()));
    REQUIRE_OK(t.commit());
  }

  void expect_scans() {
    auto any = [&] { return key_set_.make(random_() % key_count); };
    Snapshot snapshot = database_->snapshot();
    expect_scan(snapshot, table_, model_, {});
    expect_scan(snapshot, table_, model_, {.reverse = true});
    for (int i = 0; i < 6; ++i) {
      ScanOptions o;
      o.from = any();
      o.to = any();
      o.from_inclusive = random_() % 2;
      o.to_inclusive = random_() % 2;
      if (i > 3) o.prefix = o.from->substr(0, random_() % (o.from->size() + 1));
      o.reverse = random_() % 2;
      o.batch_rows = random_() % 3 ? 1 + random_() % 5000 : 0;
      expect_scan(snapshot, table_, model_, o);
    }
  }

  std::mt19937_64 random_{seed()};
  bool fixed_values_ = random_() % 2;
  MemoryFileSystem files_{{.crashable = false}};
  std::unique_ptr<Database> database_;
  Table table_;
  Model model_;
};

TEST_CASE_METHOD(MergeTest, "MergeTest.AnyInterleaving", "[MergeTest]") {
  for (uint64_t run = 2 + random_() % 8, stretch = 1; run > 0;
       --run, stretch *= 1 + random_() % 6) {
    uint64_t of = 1 + random_() % 4;
    uint64_t erased = random_() % 2 ? 0 : 1 + random_() % 20;
    if (stretch > 1 && random_() % 2) {
      add_run(key_count, erased, [&](uint64_t n) { return n / stretch % of == 0; });
    } else {
      add_run(key_count, erased, [&](uint64_t) { return random_() % of == 0; });
    }
  }
  expect_scans();
  reopen();
  expect_scans();
  REQUIRE_OK(database_->compact());
  expect_scans();
  reopen();
  expect_scans();
}

// What comes before the damage is handed out and right, whatever the direction.
TEST_CASE_METHOD(MergeTest, "MergeTest.DamageEndsAScan", "[MergeTest]") {
  constexpr uint64_t rows = 20'000;
  for (int run = 0; run < 3; ++run) add_run(rows, 50, [&](uint64_t) { return random_() % 3 == 0; });
  add_run(rows, 0, [](uint64_t n) { return n / 3000 % 2 == 0; });
  int noticed = 0;
  for (int round = 0; round < smaller_under_sanitizers(12, 8); ++round) {
    auto damaged = files_.crash(0, CrashPolicy::keep_unsynced);
    auto names = damaged->list("/db");
    REQUIRE_OK(names);
    std::erase_if(*names, [](const std::string& name) { return !name.ends_with(".seg"); });
    auto file = damaged->open("/db/" + (*names)[random_() % names->size()], OpenMode::write);
    REQUIRE_OK(file);
    uint64_t offset = 4096 + random_() % (*(*file)->size() * 3 / 4);
    std::byte byte;
    REQUIRE_OK((*file)->read_at(offset, {&byte, 1}));
    byte ^= std::byte{0x10};
    REQUIRE_OK((*file)->write_at(offset, {&byte, 1}));
    Options options;
    options.memtable_bytes = 0;  // each commit makes a segment
    options.file_system = damaged.get();
    auto db = Database::open("/db", options);
    if (!db.ok()) continue;
    auto table = (*db)->open_table("t");
    REQUIRE_OK(table);
    for (bool reverse : {false, true}) {
      auto scan = (*db)->snapshot().scan(*table, {.reverse = reverse});
      if (!scan.ok()) {
        CHECK(scan.status().code() == StatusCode::corruption);
        continue;
      }
      std::vector<std::pair<std::string, std::string>> expected(model_.begin(), model_.end());
      if (reverse) std::reverse(expected.begin(), expected.end());
      uint64_t row = 0;
      ScanBatch batch;
      while (scan->next(&batch))
        for (uint64_t i = 0; i < batch.keys.size; ++i, ++row) {
          REQUIRE(text(batch.keys[i]) == expected[row].first);
          REQUIRE(text(batch.values[i]) == expected[row].second);
        }
      REQUIRE_FALSE(scan->next(&batch));
      if (scan->status().ok()) {
        REQUIRE(row == expected.size());
      } else {
        CHECK(scan->status().code() == StatusCode::corruption);
        ++noticed;
      }
    }
  }
  CHECK(noticed > 0);
}

}  // namespace
}  // namespace stride::test
