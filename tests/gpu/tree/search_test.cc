
#include <atomic>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tree_option_sets.h"

namespace stride::test {
namespace {

Bytes bytes_of(const std::string& s) { return as_bytes(s); }

uint32_t rank_of(const Keys& keys, const std::string& query) {
  uint32_t rank = rank_below(keys, query);
  return rank < keys.size() && keys[rank] == query ? rank : Location::absent;
}

RankInterval ranks_with_prefix(const Keys& keys, const std::string& prefix) {
  uint32_t first = rank_below(keys, prefix), last = first;
  while (last < keys.size() && keys[last].starts_with(prefix)) ++last;
  return {first, last};
}

void build(Backend& backend, const TreeOptions& options, OwnedIndex* index) {
  Status status = backend.tree_index().build_tree(index->column(), options, &index->image());
  REQUIRE_OK(status);
  status = check_tree(index->image(), index->keys().size());
  REQUIRE_OK(status);
}

void expect_searches(Backend& backend, const OwnedIndex& index, const Keys& queries, bool fixed,
                     BlockGuard* guard = nullptr) {
  OwnedColumn owned(queries, fixed);
  KeyColumn column = owned.column();
  IndexView view = index.view(guard);
  std::vector<Location> found(queries.size());
  REQUIRE_OK(backend.tree_index().find({&view, 1}, column, found));
  std::vector<uint32_t> lower(queries.size());
  REQUIRE_OK(backend.tree_index().lower_bound(view, column, lower));
  for (size_t i = 0; i < queries.size(); ++i) {
    uint32_t expected = rank_of(index.keys(), queries[i]);
    REQUIRE_MESSAGE(found[i].found() == (expected != Location::absent), i);
    if (found[i].found()) {
      REQUIRE(found[i].index == 0u);
      REQUIRE_MESSAGE(found[i].rank == expected, i);
    }
    REQUIRE_MESSAGE(lower[i] == rank_below(index.keys(), queries[i]), i);
    uint32_t rank;
    REQUIRE_OK(find_one(view, bytes_of(queries[i]), &rank));
    REQUIRE_MESSAGE(rank == expected, i);
    REQUIRE_OK(lower_bound_one(view, bytes_of(queries[i]), &rank));
    REQUIRE_MESSAGE(rank == lower[i], i);
  }
}

void expect_prefixes(Backend& backend, const OwnedIndex& index, const Keys& queries) {
  OwnedColumn owned(queries, true);
  std::vector<RankInterval> ranks(queries.size());
  REQUIRE_OK(backend.tree_index().prefix_interval(index.view(), owned.column(), ranks));
  for (size_t i = 0; i < queries.size(); ++i) {
    RankInterval expected = ranks_with_prefix(index.keys(), queries[i]);
    REQUIRE_MESSAGE(ranks[i].first == expected.first, i);
    REQUIRE_MESSAGE(ranks[i].last == expected.last, i);
  }
}

TEST_CASE("SearchTest.AgreesWithTheStandardLibrary", "[SearchTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (const KeySet& set : key_sets()) {
    for (size_t n : {0, 1, 2, 7, 8, 9, 100, 3000}) {
      if (n > 300 && set.make == only_zeros) n = 300;
      for (int round = 0; round < smaller_under_sanitizers(6, 2); ++round) {
        TreeOptions options = random_options(random);
        INFO(describe(set, n, options));
        OwnedIndex index(sorted_unique(set.make(random, n)), random() % 4 != 0);
        if (round > 0) build(*backend, options, &index);
        bool same_width = random() % 2;
        Keys queries = queries_for(random, index.keys(), 500, same_width);
        expect_searches(*backend, index, queries, true);
        queries.resize(50);
        expect_prefixes(*backend, index, queries);
      }
    }
  }
}

TEST_CASE("SearchTest.AgreesAtEveryBatchSize", "[SearchTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, words}) {
    OwnedIndex index(sorted_unique(make(random, 20000)), true);
    build(*backend, {}, &index);
    for (size_t n : {0, 1, 15, 16, 17, 31, 32, 33, 1000, 1024, 1025, 4096, 100000}) {
      INFO(n);
      expect_searches(*backend, index, queries_for(random, index.keys(), n, true), true);
    }
  }
}

TEST_CASE("SearchTest.FindsManyNumbers", "[SearchTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, clusters, exponential}) {
    OwnedIndex index(sorted_unique(make(random, smaller_under_sanitizers(300000, 60000))), true);
    build(*backend, {}, &index);
    expect_searches(
        *backend, index,
        queries_for(random, index.keys(), smaller_under_sanitizers(100000, 30000), true), true);
  }
}

TEST_CASE("SearchTest.TakesTheNewestOfSeveralIndexes", "[SearchTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (bool numbers : {true, false}) {
    Keys pool = numbers ? random_numbers(random, 5000) : words(random, 5000);
    std::vector<std::unique_ptr<OwnedIndex>> indexes;
    std::vector<IndexView> views;
    for (int i = 0; i < 20; ++i) {
      Keys keys;
      for (size_t k = random() % 1000; k > 0; --k) keys.push_back(pool[random() % pool.size()]);
      // Keys of other widths lie among the numbers too.
      if (i % 7 == 3) keys.push_back("odd one");
      indexes.push_back(std::make_unique<OwnedIndex>(sorted_unique(keys), true));
      if (i % 5) build(*backend, {}, indexes.back().get());
      views.push_back(indexes.back()->view());
    }
    Keys queries = queries_for(random, pool, 10000, numbers);
    OwnedColumn owned(queries, true);
    std::vector<Location> out(queries.size());
    REQUIRE_OK(backend->tree_index().find(views, owned.column(), out));
    for (size_t q = 0; q < queries.size(); ++q) {
      uint32_t expected = Location::absent, rank = 0;
      for (uint32_t i = 0; i < indexes.size() && expected == Location::absent; ++i) {
        rank = rank_of(indexes[i]->keys(), queries[q]);
        if (rank != Location::absent) expected = i;
      }
      REQUIRE(out[q].index == expected);
      REQUIRE((!out[q].found() || out[q].rank == rank));
    }
    REQUIRE_OK(backend->tree_index().find({}, owned.column(), out));
    for (const Location& location : out) REQUIRE_FALSE(location.found());
  }
}

// Remembers that all bytes which are read were asked for, and finds damage where told.
class TestGuard : public BlockGuard {
 public:
  explicit TestGuard(int64_t calls_before_damage) : left_(calls_before_damage) {}
  bool ensure(const void*, uint64_t bytes) override {
    CHECK(bytes > 0u);
    return left_.fetch_sub(1) > 0;
  }
  Status failure() const override { return Status::corruption("000001.seg", 65536, "damaged"); }
  bool asked() const { return asked_at_ != left_; }

 private:
  std::atomic<int64_t> left_;
  int64_t asked_at_ = left_;
};

TEST_CASE("SearchTest.AsksTheGuardAndReportsDamage", "[SearchTest]") {
  Random random(seed());
  auto backend = Backend::host(2);
  for (auto make : {random_numbers, words, fixed_width<16>}) {
    OwnedIndex index(sorted_unique(make(random, 5000)), true);
    build(*backend, {}, &index);
    Keys queries = queries_for(random, index.keys(), 3000, true);
    TestGuard sound(1ll << 60);
    expect_searches(*backend, index, queries, true, &sound);
    CHECK(sound.asked());
    OwnedColumn owned(queries, true);
    for (int64_t calls : {0, 1, 1000}) {
      TestGuard damaged(calls);
      IndexView views[2] = {index.view(&damaged), index.view()};
      std::vector<Location> found(queries.size());
      CHECK(backend->tree_index().find(views, owned.column(), found).code() ==
            StatusCode::corruption);
      std::vector<uint32_t> lower(queries.size());
      CHECK(backend->tree_index().lower_bound(views[0], owned.column(), lower).code() ==
            StatusCode::corruption);
      std::vector<RankInterval> ranks(queries.size());
      CHECK(backend->tree_index().prefix_interval(views[0], owned.column(), ranks).code() ==
            StatusCode::corruption);
      uint32_t rank;
      Status one = find_one(views[0], bytes_of(index.keys()[0]), &rank);
      if (calls == 0) CHECK(one.code() == StatusCode::corruption);
    }
  }
}

TEST_CASE("SearchTest.RefusesRoomOfAnotherSize", "[SearchTest]") {
  auto backend = Backend::host(1);
  OwnedIndex index({"a", "b"}, true);
  OwnedColumn queries({"a", "b", "c"}, true);
  std::vector<Location> found(2);
  IndexView view = index.view();
  CHECK(backend->tree_index().find({&view, 1}, queries.column(), found).code() ==
        StatusCode::invalid_argument);
  std::vector<uint32_t> lower(4);
  CHECK(backend->tree_index().lower_bound(view, queries.column(), lower).code() ==
        StatusCode::invalid_argument);
}

}  // namespace
}  // namespace stride::test
