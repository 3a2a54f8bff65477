// A table of prefixes beside its model, for addresses of so many bits.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/prefix_model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {

inline void expect_status(const Status& s, StatusCode code, const std::string& needle) {
  CHECK_MESSAGE(s.code() == code, s.to_string());
  CHECK_MESSAGE(s.to_string().find(needle) != std::string::npos, s.to_string());
}

class PrefixTestBase {
 protected:
  explicit PrefixTestBase(uint32_t bits)
      : bits_(bits), random_(seed()), model_(bits), prefixes_(bits, random_) {
    open();
  }

  void open() {
    database_.reset();
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    options.memory_limit_bytes = limit_;
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    database_ = std::move(*db);
    auto table = database_->open_or_create_table("t", {.address_bits = bits_});
    REQUIRE_OK(table);
    table_ = *table;
  }

  // Null: an erasure. The last of a key wins.
  using Changes = std::vector<std::pair<std::string, std::optional<std::string>>>;
  void commit(const Changes& changes) {
    WriteTransaction t = database_->begin();
    for (const auto& [key, value] : changes) {
      if (value) {
        REQUIRE_OK(t.put(table_, key, *value));
        model_.entries()[key] = *value;
      } else {
        REQUIRE_OK(t.erase(table_, key));
        model_.entries().erase(key);
      }
    }
    REQUIRE_OK(t.commit(Durability::none));
  }
  std::string value() { return "v" + std::to_string(values_++); }

  // New prefixes, replacements, erasures of what is there and of what is not, twice and again.
  Changes random_changes(size_t n) {
    Changes changes;
    for (size_t i = 0; i < n; ++i) {
      std::string key = prefixes_.key(model_);
      if (random_() % 2 && !model_.entries().empty()) {
        auto it = model_.entries().lower_bound(key);
        if (it != model_.entries().end()) key = it->first;
      }
      bool erase = random_() % 3 == 0;
      changes.emplace_back(key, erase ? std::nullopt : std::optional(value()));
      if (random_() % 8 == 0) changes.emplace_back(key, value());
      if (random_() % 8 == 0) changes.emplace_back(key, std::nullopt);
    }
    return changes;
  }

  std::vector<std::string> random_addresses(const PrefixModel& model, size_t n) {
    std::vector<std::string> addresses;
    if (bits_ == byte_strings) {
      addresses = {"", std::string(1, '\0'), "\xFF"};
    } else {
      addresses = {first_bits(std::string(address_bytes(bits_), '\0'), bits_),
                   first_bits(std::string(address_bytes(bits_), '\xFF'), bits_)};
    }
    for (const auto& [key, value] : model.entries())
      if (addresses.size() < n / 2) addresses.push_back(model.address_of(key));
    while (addresses.size() < n) addresses.push_back(prefixes_.address());
    return addresses;
  }

  void expect_all(const Snapshot& snapshot, const PrefixModel& model) {
    std::vector<std::string> addresses = random_addresses(model, 150);
    expect_match(snapshot, table_, model, addresses);
    std::vector<std::string> keys;
    for (int i = 0; i < 40; ++i) keys.push_back(prefixes_.key(model));
    for (const auto& [key, value] : model.entries()) keys.push_back(key);
    expect_gets(snapshot, table_, model, keys);
    for (int i = 0; i < 8; ++i) {
      expect_match_of_one(snapshot, table_, model, addresses[random_() % addresses.size()]);
      expect_inside(snapshot, table_, model, keys[random_() % keys.size()]);
    }
  }
  void expect_all() { expect_all(database_->snapshot(), model_); }

  uint64_t runs() const { return database_->tables()[0].runs; }

  uint32_t bits_;
  uint64_t limit_ = 0;
  std::mt19937_64 random_;
  PrefixModel model_;
  RandomPrefixes prefixes_;
  MemoryFileSystem files_;
  std::unique_ptr<Database> database_;
  Table table_;
  uint64_t values_ = 0;
};

}  // namespace stride::test
