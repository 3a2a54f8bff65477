// A database with tables of all kinds, and calls whose allocations fail one after the other. One
// file of a program includes this: it replaces operator new.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "engine/prefixes.h"
#include "tests/support/catch.h"
#include "tests/support/failing_allocations.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"
#include "tests/support/sanitizers.h"

namespace stride::test {

class AllocationTest {
 protected:
  const bool one_ = GENERATE(true, false);
  RunsWith name_{one_ ? "one" : "all that follow"};

  AllocationTest() {
    only_one = one_;
    open();
    for (const char* name : {"rows", "numbers", "prefixes"}) {
      TableOptions options;
      if (name[0] == 'n') options.numbers = NumberType::i64;
      if (name[0] == 'p') options.address_bits = 32;
      REQUIRE_OK(db_->create_table(name, options).status());
      expected_[name];
    }
    for (int run = 0; run < 3; ++run) {
      WriteTransaction t = db_->begin();
      for (int i = 0; i < 40; ++i) {
        std::string key = "key" + std::to_string(i * (run + 1));
        std::string value(run * 50, 'v');
        REQUIRE_OK(t.put(table("rows"), key, value));
        expected_["rows"][key] = value;
      }
      int64_t number = run;
      std::string key = "n" + std::to_string(run);
      std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
      REQUIRE_OK(t.put(table("numbers"), key, bytes));
      expected_["numbers"][key] = bytes;
      auto prefix = parse_prefix("10." + std::to_string(run) + ".0.0/16", 32);
      REQUIRE_OK(prefix);
      REQUIRE_OK(t.put(table("prefixes"), *prefix, "p"));
      expected_["prefixes"][*prefix] = "p";
      REQUIRE_OK(t.commit(Durability::flush));
    }
  }

  void open() {
    db_.reset();
    Options options{.durability = Durability::flush, .threads = 2};
    options.max_range_tombstones = random_() % 2 ? 0 : 4096;
    options.log_file = false;  // its thread would take what is to fail here
    auto opened = Database::open(directory_.path(), options);
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
  }
  Table table(const std::string& name) { return *db_->open_table(name); }

  void expect_content() {
    auto read = read_all(*db_);
    REQUIRE(read.has_value());
    REQUIRE(*read == expected_);
  }

  // Calls change(&after), which makes one change that `after` becomes if it succeeds, until it does
  // so without an allocation that fails.
  void sweep_change(const std::function<Status(Tables* after)>& change) {
    for (int64_t n = 0;; n = next_after(n)) {
      INFO("allocation " + std::to_string(n));
      Tables after = expected_;
      Status s;
      bool failed = fail_allocation(n, [&] { s = change(&after); });
      if (s.ok()) expected_ = after;
      if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
      expect_content();
      if (n % 16 == 15) {
        open();
        expect_content();
      }
      if (failed) continue;
      REQUIRE_OK(s);
      REQUIRE(n > 0);
      break;
    }
    REQUIRE_OK(db_->verify());
    open();
    expect_content();
  }

  // Calls read(), which checks its result where it is ok, likewise.
  void sweep_read(const std::function<Status()>& read) {
    for (int64_t n = 0;; ++n) {
      INFO("allocation " + std::to_string(n));
      Status s;
      bool failed = fail_allocation(n, [&] { s = read(); });
      if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
      if (failed) continue;
      REQUIRE_OK(s);
      break;
    }
  }

  // Every allocation where the tests are to run for long, else some of them, others in each run.
  int64_t next_after(int64_t n) {
    return n + 1 + (soak_seconds(0) > 0 ? 0 : random_() % (under_sanitizer ? 10 : 4));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> db_;
  Tables expected_;
  std::mt19937_64 random_{seed()};
};

}  // namespace stride::test
