// What the tree workload takes for right: the searches of the standard library agree with plain
// loops, and a wrong answer is noticed and named.

#include <algorithm>
#include <random>

#include "benchmark/datasets/text_source.h"
#include "benchmark/harness/placed_memory.h"
#include "benchmark/harness/timed_phases.h"
#include "benchmark/peers/hash_index.h"
#include "benchmark/workloads/tree/answers.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

using Texts = std::vector<std::string>;

OwnedColumn column_of_texts(const Texts& texts, uint32_t width, Parallel* parallel) {
  return make_column(width, texts.size(), parallel, [&](uint64_t i) { return as_bytes(texts[i]); });
}

Texts random_texts(uint64_t n, uint32_t width, std::mt19937_64* random) {
  Texts texts(n);
  for (std::string& text : texts) {
    text.resize(width ? width : (*random)() % 5);
    for (char& c : text) c = static_cast<char>((*random)() % 7 * 40);
  }
  return texts;
}

class TreeAnswersTest {
 protected:
  const uint32_t width_ = GENERATE(0u, 3u, 4u, 8u, 11u);
  test::RunsWith name_{std::to_string(width_)};

  TreeAnswersTest() {
    std::mt19937_64 random(test::seed());
    keys_ = random_texts(3000, width_, &random);
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    Texts shuffled = keys_;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    sorted_.emplace(column_of_texts(shuffled, width_, &parallel_).view(), &parallel_);
    queries_ = random_texts(5000, width_, &random);
    queries_.insert(queries_.end(), keys_.begin(), keys_.end());
    column_ = column_of_texts(queries_, width_, &parallel_);
  }
  uint32_t rank_below(const std::string& query) const {
    return static_cast<uint32_t>(std::lower_bound(keys_.begin(), keys_.end(), query) -
                                 keys_.begin());
  }

  Parallel parallel_{3};
  Texts keys_, queries_;
  std::optional<SortedColumn> sorted_;
  OwnedColumn column_;
};

TEST_CASE_METHOD(TreeAnswersTest, "TreeAnswersTest.SearchesAgreeWithPlainOnes",
                 "[TreeAnswersTest]") {
  uint64_t n = queries_.size();
  std::vector<uint32_t> lower(n), found(n), hashed(n);
  sorted_->lower_bound(column_.view(), &parallel_, lower);
  sorted_->find_ranks(column_.view(), &parallel_, found);
  HashIndex(sorted_->view()).find_ranks(column_.view(), &parallel_, hashed);
  std::vector<RankInterval> intervals(n);
  for (uint64_t i = 0; i < n; ++i) {
    uint32_t rank = rank_below(queries_[i]);
    bool there = rank < keys_.size() && keys_[rank] == queries_[i];
    REQUIRE(lower[i] == rank);
    REQUIRE(sorted_->lower_bound(as_bytes(queries_[i])) == rank);
    REQUIRE(found[i] == (there ? rank : Location::absent));
    REQUIRE(hashed[i] == found[i]);
    REQUIRE(sorted_->contains(as_bytes(queries_[i])) == there);
    for (uint64_t bytes : {size_t{0}, queries_[i].size() / 2, queries_[i].size()}) {
      std::string prefix = queries_[i].substr(0, bytes);
      intervals[i] = sorted_->prefix_interval(as_bytes(prefix));
      REQUIRE(intervals[i].first == rank_below(prefix));
      uint32_t last = intervals[i].first;
      while (bytes > 0 && last < keys_.size() && keys_[last].starts_with(prefix)) ++last;
      REQUIRE(intervals[i].last == (bytes == 0 ? keys_.size() : last));
    }
  }
  CHECK_OK(check_find_ranks(*sorted_, column_.view(), found, &parallel_));
  CHECK_OK(check_lower_bound(*sorted_, column_.view(), lower, &parallel_));
  CHECK_OK(check_prefix_interval(*sorted_, column_.view(), intervals, &parallel_));
}

TEST_CASE_METHOD(TreeAnswersTest, "TreeAnswersTest.WrongAnswersAreNamed", "[TreeAnswersTest]") {
  uint64_t n = queries_.size();
  std::vector<uint32_t> lower(n), found(n);
  std::vector<RankInterval> intervals(n);
  sorted_->lower_bound(column_.view(), &parallel_, lower);
  sorted_->find_ranks(column_.view(), &parallel_, found);
  for (uint64_t i = 0; i < n; ++i) intervals[i] = sorted_->prefix_interval(as_bytes(queries_[i]));
  auto expect_named = [&](const Status& status, const std::string& expected,
                          const std::string& got) {
    CHECK(status.code() == StatusCode::corruption);
    for (const std::string& part : {expected, got, "query " + std::to_string(n - 1)}) {
      CHECK_MESSAGE(status.message().find(part) != std::string::npos, status.message());
    }
  };
  std::string rank = std::to_string(keys_.size() - 1);  // the last query is the last key
  found[n - 1] = Location::absent;
  expect_named(check_find_ranks(*sorted_, column_.view(), found, &parallel_),
               "expected rank " + rank, "got absent");
  ++lower[n - 1];
  expect_named(check_lower_bound(*sorted_, column_.view(), lower, &parallel_),
               "expected rank " + rank, "got rank " + std::to_string(keys_.size()));
  ++intervals[n - 1].last;
  expect_named(check_prefix_interval(*sorted_, column_.view(), intervals, &parallel_),
               "expected ranks [" + rank + ", ", "got ranks [" + rank + ", ");
}

TEST_CASE_METHOD(TreeAnswersTest, "TreeAnswersTest.SortedCopies", "[TreeAnswersTest]") {
  OwnedColumn copy = sorted_copy(column_.view(), &parallel_);
  Texts expected = queries_;
  std::sort(expected.begin(), expected.end());
  for (uint64_t i = 0; i < copy.rows; ++i) REQUIRE(as_text(copy.view()[i]) == expected[i]);
}

// Keys of these widths; 0: of any.

TEST_CASE("PlacedMemoryTest.ColumnsAndResultsInAnyMemory", "[PlacedMemoryTest]") {
  auto backend = Backend::host(1);
  TextColumn texts;
  for (const char* text : {"one", "", "three"}) texts.add(text);
  for (Where where : {Where::host, Where::pinned, Where::backend}) {
    Placement placement{backend.get(), where};
    PlacedColumn placed;
    REQUIRE_OK(placed.place(placement, texts.view()));
    CHECK((placed.view().data == texts.view().data) == (where == Where::host));
    CHECK(as_text(placed.view()[2]) == "three");
    PlacedResults<uint32_t> results;
    REQUIRE_OK(results.reserve(placement, 3));
    for (uint32_t i = 0; i < 3; ++i) results.all()[i] = 10 + i;
    std::span<const uint32_t> fetched;
    REQUIRE_OK(results.fetch(2, &fetched));
    REQUIRE(fetched.size() == 2u);
    CHECK(fetched[1] == 11u);
  }
}

TEST_CASE("TimedPhasesTest.MedianOfTheCallsAfterTheFirst", "[TimedPhasesTest]") {
  Progress silent(false);
  TimedPhases phases({.repeats = 3, .min_seconds = 10}, ResultRow{.workload = "tree"}, "", &silent);
  std::vector<double> times = {9, 4, 1, 2, 8};
  size_t calls = 0;
  REQUIRE_OK(phases.measure("find", 7, [&](double* seconds) {
    *seconds = times[calls++];
    return Status();
  }));
  CHECK_MESSAGE(calls == 5u, "until they take 10 seconds");
  CHECK(phases.rows()[0].seconds == 4);
  CHECK(phases.rows()[0].records == 7u);
  CHECK(phases.rows()[0].numbers["repeats"] == 4);
  CHECK_FALSE(phases.measure("find", 7, timed([] { return Status::invalid("no"); })).ok());
  CHECK(phases.rows().size() == 1u);
}

}  // namespace
}  // namespace stride::benchmark
