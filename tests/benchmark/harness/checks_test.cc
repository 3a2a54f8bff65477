// The checks of the benchmark itself: right answers pass, every kind of wrong one is noticed.

#include <algorithm>
#include <map>
#include <random>

#include "benchmark/harness/byte_sum.h"
#include "benchmark/harness/expected.h"
#include "benchmark/harness/lookup_plan.h"
#include "benchmark/harness/sorted_rows.h"
#include "tests/benchmark/sample_records.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

using Pairs = std::vector<std::pair<uint64_t, std::string>>;

TEST_CASE("ByteSumTest.EqualsTheScalarSumAtEveryLength", "[ByteSumTest]") {
  std::mt19937_64 random(test::seed());
  std::vector<std::byte> data(400);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  for (size_t from = 0; from < 20; ++from) {
    for (size_t n = 0; n + from <= data.size(); ++n) {
      REQUIRE_MESSAGE(byte_sum(data.data() + from, n) == byte_sum_scalar(data.data() + from, n), n);
    }
  }
}

TEST_CASE("SortRowsTest.SortsNumbersAsStableSortDoes", "[SortRowsTest]") {
  for (unsigned threads : {1u, 4u}) {
    Parallel parallel(threads);
    for (uint64_t n : {0u, 1u, 2u, 1000u, 200'000u}) {
      auto sample = test::SampleRecords::random(3, n, test::seed() + n);
      Records records = sample.records();
      ResultBuffer<SortedRow> rows;
      sort_rows(records, &parallel, &rows);
      REQUIRE(rows.size() == n);
      for (uint64_t i = 1; i < n; ++i) {
        REQUIRE(rows[i].prefix == key_prefix(records.key(rows[i].row)));
        REQUIRE(std::make_pair(rows[i - 1].prefix, rows[i - 1].row) <
                std::make_pair(rows[i].prefix, rows[i].row));
      }
    }
  }
}

TEST_CASE("SortRowsTest.SortsTextsWithSharedPrefixes", "[SortRowsTest]") {
  std::mt19937_64 random(test::seed());
  TextColumn keys;
  std::vector<std::string> texts;
  for (int i = 0; i < 50'000; ++i) {
    texts.push_back(std::string(random() % 12, 'a') + std::to_string(random() % 1000));
    keys.add(texts.back());
  }
  Parallel parallel(3);
  ResultBuffer<SortedRow> rows;
  sort_rows(keys.view(), &parallel, &rows);
  for (uint64_t i = 1; i < rows.size(); ++i) {
    REQUIRE(std::make_pair(texts[rows[i - 1].row], rows[i - 1].row) <=
            std::make_pair(texts[rows[i].row], rows[i].row));
  }
}

class ChecksTest {
 protected:
  ChecksTest() {
    for (uint64_t i = 0; i < 1000; ++i) {
      pairs_.emplace_back(i * 7 + 1, "value " + std::to_string(i));
      sample_.add(i % 2, pairs_.back().first, pairs_.back().second);
    }
    records_ = sample_.records();
    expected_ = std::make_unique<Expected>(&records_, &parallel_);
  }

  Status cheap_check(const Pairs& pairs, bool columns) {
    ReadCheck check(true);
    feed(pairs, columns, check);
    return expected_->check(check);
  }
  Status full_check(const Pairs& pairs, bool columns) {
    FullCheck check(expected_.get());
    feed(pairs, columns, check);
    return check.finish();
  }
  template <class Check>
  void feed(const Pairs& pairs, bool columns, Check& check) {
    for (size_t at = 0; at < pairs.size(); at += 64) {
      test::SampleRecords batch(1);
      for (size_t i = at; i < std::min(pairs.size(), at + 64); ++i) {
        batch.add(0, pairs[i].first, pairs[i].second);
        if (!columns) check.record(pairs[i].first, as_bytes(pairs[i].second));
      }
      Records records = batch.records();
      if (columns) check.batch(records.flows()[0].keys, records.flows()[0].values);
    }
  }
  void expect_both_fail(const Pairs& pairs, const char* what) {
    for (bool columns : {false, true}) {
      CHECK_MESSAGE(cheap_check(pairs, columns).code() == StatusCode::corruption, what);
      CHECK_MESSAGE(full_check(pairs, columns).code() == StatusCode::corruption, what);
    }
  }

  Parallel parallel_{2};
  Pairs pairs_;
  test::SampleRecords sample_{2};
  Records records_;
  std::unique_ptr<Expected> expected_;
};

TEST_CASE_METHOD(ChecksTest, "ChecksTest.RightAnswersPass", "[ChecksTest]") {
  CHECK(expected_->size() == pairs_.size());
  for (bool columns : {false, true}) {
    CHECK_OK(cheap_check(pairs_, columns));
    CHECK_OK(full_check(pairs_, columns));
  }
}

TEST_CASE_METHOD(ChecksTest, "ChecksTest.KeysOutOfOrderAreNoticed", "[ChecksTest]") {
  for (size_t i : {0u, 62u, 63u, 64u, 500u, 998u}) {
    Pairs pairs = pairs_;
    std::swap(pairs[i], pairs[i + 1]);
    expect_both_fail(pairs, "swapped");
  }
}

TEST_CASE_METHOD(ChecksTest, "ChecksTest.LostAndAddedRecordsAreNoticed", "[ChecksTest]") {
  for (size_t i : {0u, 63u, 64u, 999u}) {
    Pairs lost = pairs_;
    lost.erase(lost.begin() + static_cast<std::ptrdiff_t>(i));
    expect_both_fail(lost, "lost");
    Pairs twice = pairs_;
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i), pairs_[i]);
    expect_both_fail(twice, "twice");
  }
  Pairs more = pairs_;
  more.emplace_back(~uint64_t{0}, "");
  expect_both_fail(more, "more");
  expect_both_fail({}, "nothing");
}

TEST_CASE_METHOD(ChecksTest, "ChecksTest.ChangedValuesAreNoticed", "[ChecksTest]") {
  for (size_t i : {0u, 500u, 999u}) {
    Pairs pairs = pairs_;
    pairs[i].second[3] = static_cast<char>(pairs[i].second[3] ^ 4);
    expect_both_fail(pairs, "changed");
    pairs = pairs_;
    pairs[i].second.clear();
    expect_both_fail(pairs, "emptied");
  }
}

TEST_CASE_METHOD(ChecksTest, "ChecksTest.TheFullCheckNoticesExchangedValuesAndKeys",
                 "[ChecksTest]") {
  Pairs pairs = pairs_;
  std::swap(pairs[3].second, pairs[4].second);
  CHECK_FALSE(full_check(pairs, true).ok());
  pairs = pairs_;
  ++pairs[7].first;
  CHECK_FALSE(full_check(pairs, true).ok());
}

TEST_CASE_METHOD(ChecksTest, "ChecksTest.WrongLookupsAreNoticed", "[ChecksTest]") {
  test::SampleRecords asked(1);
  asked.add(0, pairs_[5].first, "");
  asked.add(0, 2, "");
  KeyColumn queries = asked.records().flows()[0].keys;
  const uint32_t ranks[] = {5, LookupPlan::none};
  LookupResult result;
  std::string data = pairs_[5].second;
  auto check = [&](bool first, bool second) {
    const uint64_t offsets[] = {0, data.size(), data.size()};
    result.found = Bitmap(2);
    if (first) result.found.set(0);
    if (second) result.found.set(1);
    result.values = ValueColumn::variable(data.data(), offsets, 2);
    return check_answers(*expected_, ranks, queries, result).ok();
  };
  CHECK(check(true, false));
  CHECK_FALSE(check(false, false));
  CHECK_FALSE(check(true, true));
  data[0] = '?';
  CHECK_FALSE(check(true, false));
}

TEST_CASE("ExpectedTest.LastValueWinsInAFlowAndAnyFlowsLastBetweenFlows", "[ExpectedTest]") {
  test::SampleRecords sample(2);
  sample.add(0, 5, "old");
  sample.add(0, 5, "zero");
  sample.add(1, 5, "stale");
  sample.add(1, 5, "one");
  sample.add(1, 9, "nine");
  Records records = sample.records();
  Parallel parallel(1);
  Expected expected(&records, &parallel);
  CHECK(expected.size() == 2u);
  for (const char* good : {"zero", "one"}) {
    CHECK(expected.has_value(0, as_bytes(good)));
    ReadCheck check(true);
    check.record(5, as_bytes(good));
    check.record(9, as_bytes("nine"));
    CHECK_OK(expected.check(check));
  }
  for (const char* bad : {"old", "stale", ""}) CHECK_FALSE(expected.has_value(0, as_bytes(bad)));
}

TEST_CASE("ExpectedTest.AgreesWithAMap", "[ExpectedTest]") {
  auto sample = test::SampleRecords::random(1, 20'000, test::seed());
  Records records = sample.records();
  Parallel parallel(2);
  Expected expected(&records, &parallel);
  std::map<std::string, std::string> model;
  for (uint64_t i = 0; i < records.size(); ++i) {
    model[std::string(as_text(records.key(i)))] = as_text(records.value(i));
  }
  REQUIRE(expected.size() == model.size());
  ReadCheck check(true);
  uint64_t rank = 0;
  for (const auto& [key, value] : model) {
    REQUIRE(as_text(expected.key(rank)) == key);
    REQUIRE(expected.lower_bound(as_bytes(key)) == rank);
    REQUIRE(expected.has_value(rank++, as_bytes(value)));
    check.record(as_bytes(key), as_bytes(value));
  }
  CHECK_OK(expected.check(check));
}

}  // namespace
}  // namespace stride::benchmark
