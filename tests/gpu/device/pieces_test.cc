// Batches of numbers from and to plain and pinned host memory, which a device searches piece by
// piece while the host brings them (gpu/device/piece_flags.h). The host backend does the same
// batches.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/device/device_faults.h"
#include "gpu/device/piece_flags.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

enum class MemoryPlace { plain, pinned, backend };

// An array in one of these places.
template <class T>
class PlacedArray {
 public:
  PlacedArray(Backend& backend, MemoryPlace place, std::vector<T> items)
      : backend_(backend), plain_(std::move(items)) {
    if (place == MemoryPlace::plain) return;
    auto memory =
        place == MemoryPlace::pinned ? backend.allocate_host(bytes()) : backend.allocate(bytes());
    REQUIRE_OK(memory);
    memory_ = std::move(*memory);
    REQUIRE_OK(backend.copy(memory_->data(), plain_.data(), bytes()));
  }
  T* data() { return memory_ ? reinterpret_cast<T*>(memory_->data()) : plain_.data(); }
  std::span<T> all() { return {data(), plain_.size()}; }
  // On the host.
  const std::vector<T>& fetch() {
    if (memory_) REQUIRE_OK(backend_.copy(plain_.data(), memory_->data(), bytes()));
    return plain_;
  }

 private:
  uint64_t bytes() const { return plain_.size() * sizeof(T); }
  Backend& backend_;
  std::vector<T> plain_;
  std::unique_ptr<BackendMemory> memory_;
};

// An index over big-endian numbers, queries for it, and what std finds.
template <class Number>
struct SortedNumbers {
  std::vector<Number> keys;  // as the machine has them, ascending
  std::vector<Number> stored;
  std::shared_ptr<ResidentIndex> index;

  SortedNumbers(Backend& backend, Random& random, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) keys.push_back(static_cast<Number>(random()));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (Number key : keys) stored.push_back(swapped(key));
    auto built = backend.tree_index().build_index(column(stored), KeyOrder::ascending, {});
    REQUIRE_OK(built);
    index = *built;
  }
  static Number swapped(Number number) {
    if constexpr (sizeof(Number) == 8) return __builtin_bswap64(number);
    return static_cast<Number>(__builtin_bswap32(static_cast<uint32_t>(number)));
  }
  static KeyColumn column(std::span<const Number> numbers) {
    return KeyColumn::fixed(reinterpret_cast<const std::byte*>(numbers.data()), sizeof(Number),
                            numbers.size());
  }
  // Some are not there.
  std::vector<Number> queries(Random& random, uint64_t n) const {
    std::vector<Number> queries;
    for (uint64_t i = 0; i < n; ++i)
      queries.push_back(random() % 3 ? stored[random() % stored.size()]
                                     : static_cast<Number>(random()));
    return queries;
  }
  uint32_t rank(Number query) const {
    const auto at = std::lower_bound(keys.begin(), keys.end(), swapped(query));
    const bool is_there = at != keys.end() && *at == swapped(query);
    return is_there ? static_cast<uint32_t>(at - keys.begin()) : Location::absent;
  }
  std::vector<uint32_t> ranks(const std::vector<Number>& queries) const {
    std::vector<uint32_t> ranks;
    for (Number query : queries) ranks.push_back(rank(query));
    return ranks;
  }
};

class PiecesTest {
 protected:
  const std::string side_ = GENERATE(as<std::string>{}, "host", "cuda");
  RunsWith name_{side_};

  PiecesTest() {
    backend_ = Backend::host(3);
    if (side_ == "host") return;
    auto device = Backend::cuda({.host_threads = 3});
    if (!device.ok()) SKIP(device.status().to_string());
    backend_ = std::move(*device);
  }
  TreeIndex& trees() { return backend_->tree_index(); }

  template <class Number>
  void expect_ranks(const SortedNumbers<Number>& numbers, const std::vector<Number>& queries,
                    const std::vector<uint32_t>& right, MemoryPlace from, MemoryPlace to) {
    INFO(queries.size() << " queries from " << static_cast<int>(from) << " to "
                        << static_cast<int>(to));
    PlacedArray<Number> asked(*backend_, from, queries);
    PlacedArray<uint32_t> ranks(*backend_, to, std::vector<uint32_t>(queries.size(), 77));
    REQUIRE_OK(trees().find_ranks(numbers.index->view(), numbers.column(asked.all()), ranks.all()));
    REQUIRE((ranks.fetch() == right) == true);
    PlacedArray<Location> locations(*backend_, to, std::vector<Location>(queries.size()));
    const IndexView view = numbers.index->view();
    REQUIRE_OK(trees().find({&view, 1}, numbers.column(asked.all()), locations.all()));
    const std::vector<Location>& found = locations.fetch();
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < right.size(); ++i)
      wrong += found[i].rank != right[i] || found[i].found() != (right[i] != Location::absent);
    REQUIRE(wrong == 0u);
  }

  std::unique_ptr<Backend> backend_;
};

constexpr MemoryPlace places[] = {MemoryPlace::plain, MemoryPlace::pinned, MemoryPlace::backend};

TEST_CASE_METHOD(PiecesTest, "PiecesTest.BatchesOfAllSizesFromAndToAnyMemory", "[PiecesTest]") {
  Random random(seed());
  const SortedNumbers<uint64_t> numbers(*backend_, random, 50'000);
  const SortedNumbers<uint32_t> narrow(*backend_, random, 3000);
  constexpr uint64_t piece = piece_queries, many = smaller_under_sanitizers(1100, 40);
  for (uint64_t n : {uint64_t{1}, 8 * piece - 1, 8 * piece, 8 * piece + 1, 65 * piece,
                     129 * piece + 5, many * piece - 1}) {
    const auto queries = numbers.queries(random, n);
    const auto right = numbers.ranks(queries);
    const auto narrow_queries = narrow.queries(random, n);
    const auto narrow_right = narrow.ranks(narrow_queries);
    for (MemoryPlace from : places)
      for (MemoryPlace to : places) {
        expect_ranks(numbers, queries, right, from, to);
        expect_ranks(narrow, narrow_queries, narrow_right, from, to);
      }
  }
}

TEST_CASE_METHOD(PiecesTest, "PiecesTest.SeveralIndexesAndBounds", "[PiecesTest]") {
  Random random(seed());
  std::vector<SortedNumbers<uint64_t>> runs;
  std::vector<IndexView> views;
  for (int i = 0; i < 11; ++i) runs.emplace_back(*backend_, random, 4000);
  for (const auto& run : runs) views.push_back(run.index->view());
  const uint64_t n = 20'000;
  std::vector<uint64_t> queries;
  while (queries.size() < n)
    for (const auto& run : runs) queries.push_back(run.stored[random() % run.stored.size()]);
  for (size_t count : {1, 2, 8, 9, 11}) {
    INFO(count << " indexes");
    std::vector<Location> found(queries.size());
    REQUIRE_OK(
        trees().find({views.data(), count}, SortedNumbers<uint64_t>::column(queries), found));
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < queries.size(); ++i) {
      Location right{Location::absent, Location::absent};
      for (uint32_t run = 0; run < count && !right.found(); ++run)
        if (uint32_t rank = runs[run].rank(queries[i]); rank != Location::absent)
          right = {run, rank};
      wrong += found[i].index != right.index || found[i].rank != right.rank;
    }
    REQUIRE(wrong == 0u);
  }
  std::vector<uint32_t> lower(queries.size()), upper(queries.size());
  const auto column = SortedNumbers<uint64_t>::column(queries);
  REQUIRE_OK(trees().lower_bound(views[0], column, lower));
  REQUIRE_OK(trees().upper_bound(views[0], column, upper));
  const std::vector<uint64_t>& keys = runs[0].keys;
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < queries.size(); ++i) {
    const auto [first, last] =
        std::equal_range(keys.begin(), keys.end(), runs[0].swapped(queries[i]));
    wrong += lower[i] != static_cast<uint32_t>(first - keys.begin()) ||
             upper[i] != static_cast<uint32_t>(last - keys.begin());
  }
  REQUIRE(wrong == 0u);
}

// A block that is refused ends the search with what it was refused for, and the next one works.
TEST_CASE_METHOD(PiecesTest, "PiecesTest.ABlockThatIsRefusedEndsTheSearch", "[PiecesTest]") {
  Random random(seed());
  const SortedNumbers<uint64_t> numbers(*backend_, random, 5000);
  const auto queries = numbers.queries(random, 300'000);
  const auto right = numbers.ranks(queries);
  const IndexView view = numbers.index->view();
  for (uint64_t refused : {uint64_t{0}, uint64_t{123'456}, queries.size() - 1}) {
    auto take = [&](uint64_t first, std::span<const Location> block) {
      if (refused < first || refused >= first + block.size()) return Status();
      return Status(StatusCode::not_found, "refused");
    };
    const Status status = trees().find_blocks({&view, 1}, numbers.column(queries), take);
    CHECK(status.code() == StatusCode::not_found);
    CHECK(status.message() == "refused");
    expect_ranks(numbers, queries, right, MemoryPlace::plain, MemoryPlace::plain);
  }
}

// Who takes blocks may work on them between two of them, and does so once more when it has all.
TEST_CASE_METHOD(PiecesTest, "PiecesTest.ThreadsHaveTimeMeanwhile", "[PiecesTest]") {
  Random random(seed());
  const SortedNumbers<uint64_t> numbers(*backend_, random, 5000);
  const IndexView view = numbers.index->view();
  for (uint64_t n : {16'384, 100'000, 300'001}) {
    INFO(n << " queries");
    const auto queries = numbers.queries(random, n);
    std::atomic<uint64_t> taken{0}, calls{0}, seen{0};
    auto take = [&](uint64_t, std::span<const Location> block) {
      taken += block.size();
      return Status();
    };
    auto meanwhile = [&] {
      ++calls;
      uint64_t now = taken, before = seen;
      while (before < now && !seen.compare_exchange_weak(before, now)) continue;
    };
    REQUIRE_OK(trees().find_blocks({&view, 1}, numbers.column(queries), {take, meanwhile}));
    CHECK(taken == n);
    const bool in_pieces = trees().finds_in_pieces({&view, 1}, numbers.column(queries));
    CHECK(in_pieces == (side_ == "cuda"));
    CHECK(seen == (in_pieces ? n : 0));
    if (!in_pieces) CHECK(calls == 0u);
  }
}

TEST_CASE_METHOD(PiecesTest, "PiecesTest.ManyCallersAtOnce", "[PiecesTest]") {
  Random random(seed());
  const SortedNumbers<uint64_t> numbers(*backend_, random, 20'000);
  const auto queries = numbers.queries(random, smaller_under_sanitizers(500'000, 60'000));
  const auto right = numbers.ranks(queries);
  TestThreads threads;
  for (uint64_t t = 0; t < 6; ++t)
    threads.start([&, t] {
      for (uint64_t i = 0; i < 6; ++i) {
        const uint64_t begin = t * 1000 + i, n = queries.size() - begin - i * 8000;
        std::vector<uint32_t> ranks(n);
        const Status status = trees().find_ranks(
            numbers.index->view(),
            SortedNumbers<uint64_t>::column(std::span(queries).subspan(begin, n)), ranks);
        CHECK_OK(status);
        const auto first = right.begin() + static_cast<ptrdiff_t>(begin);
        CHECK_MESSAGE(std::equal(ranks.begin(), ranks.end(), first), "batch of thread " << t);
      }
    });
  threads.join();
}

// Each call to the device fails once, in searches and in copies of values: the answers are right,
// or the call says that it could not, and the next one works.
TEST_CASE("PiecesTest.EachCallFails", "[PiecesTest]") {
  auto made = Backend::cuda({.host_threads = 3});
  if (!made.ok()) SKIP(made.status().to_string());
  Backend& backend = **made;
  Random random(seed());
  const SortedNumbers<uint64_t> numbers(backend, random, 3000);
  std::string bytes;
  for (uint64_t i = 0; i < numbers.keys.size(); ++i) bytes += std::string(40, char('a' + i % 26));
  PackedColumn keys{.data = reinterpret_cast<const std::byte*>(numbers.stored.data()),
                    .size = numbers.stored.size(),
                    .width = 8};
  PackedColumn values{.data = reinterpret_cast<const std::byte*>(bytes.data()),
                      .size = numbers.stored.size(),
                      .width = 40};
  std::vector<std::byte> image;
  REQUIRE_OK(backend.tree_index().build_tree(keys, {}, &image));
  auto resident =
      backend.tree_index().make_resident({keys, {image.data(), image.size()}}, {.values = &values});
  REQUIRE_OK(resident);
  const auto queries = numbers.queries(random, 40'000);
  const auto right = numbers.ranks(queries);
  std::string all;
  for (uint32_t rank : right)
    if (rank != Location::absent) all += bytes.substr(rank * 40, 40);
  const IndexView view = (*resident)->view();

  auto search = [&] {
    std::vector<uint32_t> ranks(queries.size());
    STRIDE_TRY(backend.tree_index().find_ranks(view, numbers.column(queries), ranks));
    REQUIRE((ranks == right) == true);
    return Status();
  };
  auto fetch = [&] {
    std::vector<uint64_t> found((queries.size() + 63) / 64), ends(queries.size());
    auto there = backend.tree_index().find_values({&view, 1}, numbers.column(queries), found, ends);
    if (!there.ok()) return there.status();
    std::string got((*there)->bytes(), '?');
    STRIDE_TRY((*there)->copy(reinterpret_cast<std::byte*>(got.data())));
    REQUIRE((got == all) == true);
    REQUIRE(ends.back() == all.size());
    return Status();
  };
  for (DeviceFault fault : {DeviceFault::out_of_memory, DeviceFault::lost})
    for (const std::function<Status()>& call : {std::function<Status()>(search), {fetch}}) {
      uint64_t failed = 0;
      for (uint64_t n = 1;; ++n) {
        INFO("call " << n);
        DeviceFaults::fail_call(n, fault);
        const Status status = call();
        const bool all_worked = DeviceFaults::calls() < n;
        DeviceFaults::clear();
        failed += !status.ok();
        REQUIRE_OK(call());
        if (all_worked) break;
        REQUIRE(n < 200u);
      }
      if (fault == DeviceFault::lost) CHECK(failed > 1u);
    }
}

}  // namespace
}  // namespace stride::test
