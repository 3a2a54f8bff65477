// Sums of transactions that are committed together.
#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/write/accumulate_numbers.h"
#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class AccumulateGroupTest : public GroupFixture {
 protected:
  AccumulateGroupTest() : GroupFixture({.numbers = NumberType::i64}) {
    other_ = *db_->create_table("u", {.numbers = NumberType::i64});
  }
  std::string value(const Table& table, const char* key) {
    auto found = db_->snapshot().get(table, key);
    return found.ok() && found->has_value() ? std::to_string(number_from<int64_t>(**found))
                                            : "none";
  }

  Table other_;
};

// One whose sums do not fit fails alone, whatever comes before and behind it.
TEST_CASE_METHOD(AccumulateGroupTest, "AccumulateGroupTest.OneThatOverflows",
                 "[AccumulateGroupTest]") {
  std::vector<Status> s = commit_together({
      [&](auto& t) { return t.accumulate(table_, "x", INT64_MAX - 5); },
      [&](auto& t) {
        Status first = t.accumulate(table_, "x", 3);
        return first.ok() ? t.accumulate(other_, "x", 1) : first;
      },
      [&](auto& t) {
        Status first = t.accumulate(other_, "x", 100);
        if (first.ok()) first = t.put(table_, "failed", bytes_of(int64_t{1}));
        return first.ok() ? t.accumulate(table_, "x", 3) : first;
      },
      [&](auto& t) { return t.accumulate(table_, "x", 2); },
      [&](auto& t) { return t.accumulate(table_, "x", 1); },
      [&](auto& t) { return t.accumulate(table_, "x", -7); },
      [&](auto& t) { return t.accumulate(other_, "x", 10); },
  });
  for (size_t i = 0; i < s.size(); ++i) {
    bool fails = i == 2 || i == 4;
    CHECK_MESSAGE(s[i].code() == (fails ? StatusCode::invalid_argument : StatusCode::ok), i);
    if (fails) CHECK_MESSAGE(s[i].message().find("'x'") != std::string::npos, s[i].to_string());
  }
  CHECK(value(table_, "x") == std::to_string(INT64_MAX - 7));
  CHECK(value(table_, "failed") == "none");
  CHECK(value(other_, "x") == "11");
  CHECK(db_->tables()[0].runs == 2u);  // the gate's, and one of all others
}

TEST_CASE_METHOD(AccumulateGroupTest, "AccumulateGroupTest.CommitsCountInTheirOrder",
                 "[AccumulateGroupTest]") {
  std::vector<uint64_t> was_new(1), again(1);
  int64_t one = 1;
  Rows xy({"x", "y"});
  std::vector<int64_t> values = {1000, 2000};
  std::vector<Status> s = commit_together({
      [&](auto& t) { return t.put(table_, "x", bytes_of(int64_t{10})); },
      [&](auto& t) { return t.accumulate(table_, "x", 1); },
      [&](auto& t) { return t.erase(table_, "x"); },
      [&](auto& t) { return t.accumulate(table_, "x", 2); },
      [&](auto& t) { return t.erase_range(table_, as_bytes("w"), as_bytes("y")); },
      [&](auto& t) {
        Status added = t.accumulate(table_, "x", 4);
        return added.ok() ? t.erase_range(table_, as_bytes("x"), as_bytes("x1")) : added;
      },
      [&](auto& t) { return t.accumulate(table_, "x", 8); },
      [&](auto& t) { return t.put_if_absent(table_, xy.column(), column_of(values), was_new); },
      [&](auto& t) {
        Status added = t.accumulate(table_, "y", one);
        return added.ok() ? t.put_if_absent(table_, xy.column(), column_of(values), again) : added;
      },
      [&](auto& t) { return t.accumulate(table_, "z", 5); },
  });
  for (const Status& each : s) CHECK_OK(each);
  CHECK(value(table_, "x") == "8");
  CHECK(value(table_, "y") == "2001");
  CHECK(value(table_, "z") == "5");
  CHECK(was_new[0] == 0b10u);
  CHECK(again[0] == 0u);
}

// Whatever groups commits make, no delta is lost and none counts twice.
TEST_CASE_METHOD(AccumulateGroupTest, "AccumulateGroupTest.ManyThreads", "[AccumulateGroupTest]") {
  std::mt19937_64 random(seed());
  constexpr int threads = 4, rounds = 25, keys = 20;
  Model start;
  WriteTransaction full = db_->begin();
  REQUIRE_OK(full.put(table_, "full", bytes_of(INT64_MAX)));
  REQUIRE_OK(full.commit());
  std::vector<std::atomic<int64_t>> sums(keys);
  std::vector<uint64_t> seeds;
  for (int w = 0; w < threads; ++w) seeds.push_back(random());
  TestThreads pool;
  for (int w = 0; w < threads; ++w)
    pool.start([&, w] {
      std::mt19937_64 mine(seeds[w]);
      for (int round = 0; round < rounds; ++round) {
        WriteTransaction t = db_->begin();
        std::vector<int64_t> added(keys);
        for (int i = 0; i < 30; ++i) {
          int key = static_cast<int>(mine() % keys);
          int64_t delta = static_cast<int64_t>(mine()) >> 20;
          added[key] += delta;
          CHECK_OK(t.accumulate(table_, "key " + std::to_string(key), delta));
        }
        bool overflows = mine() % 4 == 0;
        if (overflows) CHECK_OK(t.accumulate(table_, "full", 1));
        CHECK_MESSAGE(t.commit(Durability::flush).ok() == !overflows, "round " << round);
        for (int key = 0; key < keys && !overflows; ++key) sums[key] += added[key];
      }
    });
  pool.join();
  CHECK(value(table_, "full") == std::to_string(INT64_MAX));
  for (int key = 0; key < keys; ++key)
    CHECK(value(table_, ("key " + std::to_string(key)).c_str()) == std::to_string(sums[key]));
}

}  // namespace
}  // namespace stride::test
