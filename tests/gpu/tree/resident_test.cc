// Indexes where a backend searches them: the same images and the same answers from the host and
// from a device. What needs a device is skipped where there is none.

#include <atomic>
#include <thread>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tree_option_sets.h"

namespace stride::test {
namespace {

class ResidentTest {
 protected:
  const std::string side_ = GENERATE(as<std::string>{}, "host", "cuda");
  RunsWith name_{side_};

  ResidentTest() {
    if (side_ == "host") {
      backend_ = Backend::host(2);
      return;
    }
    auto device = Backend::cuda({.host_threads = 2});
    if (!device.ok()) SKIP(device.status().to_string());
    backend_ = std::move(*device);
    CHECK(backend_->has_device());
  }
  // A copy of a column in the memory that the backend searches.
  struct There {
    std::unique_ptr<BackendMemory> data, offsets;
    KeyColumn column;
  };
  There copy_to_backend(const KeyColumn& keys) {
    There there;
    there.data = allocate(std::max<uint64_t>(keys.bytes(), 1));
    CHECK_OK(backend_->copy(there.data->data(), keys.data, keys.bytes()));
    there.column = keys;
    there.column.data = there.data->data();
    if (keys.is_fixed()) return there;
    there.offsets = allocate((keys.size + 1) * 8);
    CHECK_OK(backend_->copy(there.offsets->data(), keys.offsets, (keys.size + 1) * 8));
    there.column.offsets = reinterpret_cast<const uint64_t*>(there.offsets->data());
    return there;
  }
  std::unique_ptr<BackendMemory> allocate(uint64_t bytes) {
    auto memory = backend_->allocate(bytes);
    CHECK_OK(memory);
    return std::move(*memory);
  }

  // Results of T, from room in host memory or the backend's.
  template <class T, class Search>
  std::vector<T> results(uint64_t n, bool there, const Search& search) {
    std::vector<T> out(n);
    if (!there || n == 0) {
      Status status = search(std::span<T>(out));
      CHECK_OK(status);
      return out;
    }
    auto memory = allocate(n * sizeof(T));
    Status status = search(std::span<T>(reinterpret_cast<T*>(memory->data()), n));
    CHECK_OK(status);
    CHECK_OK(backend_->copy(out.data(), memory->data(), n * sizeof(T)));
    return out;
  }

  void expect_searches(const IndexView& view, const Keys& keys, const Keys& queries, bool fixed,
                       bool queries_there, bool results_there);

  std::shared_ptr<ResidentIndex> build(const KeyColumn& keys, KeyOrder order,
                                       const TreeOptions& options) {
    auto index = backend_->tree_index().build_index(keys, order, options);
    CHECK_OK(index);
    return index.ok() ? *index : nullptr;
  }

  std::unique_ptr<Backend> backend_;
};

void ResidentTest::expect_searches(const IndexView& view, const Keys& keys, const Keys& queries,
                                   bool fixed, bool queries_there, bool results_there) {
  OwnedColumn owned(queries, fixed);
  KeyColumn column = owned.column();
  There there;
  if (queries_there) {
    there = copy_to_backend(column);
    column = there.column;
  }
  uint64_t n = queries.size();
  auto found = results<uint32_t>(n, results_there, [&](auto out) {
    return backend_->tree_index().find_ranks(view, column, out);
  });
  auto lower = results<uint32_t>(n, results_there, [&](auto out) {
    return backend_->tree_index().lower_bound(view, column, out);
  });
  auto upper = results<uint32_t>(n, results_there, [&](auto out) {
    return backend_->tree_index().upper_bound(view, column, out);
  });
  auto prefixes = results<RankInterval>(n, results_there, [&](auto out) {
    return backend_->tree_index().prefix_interval(view, column, out);
  });
  auto located = results<Location>(n, results_there, [&](auto out) {
    return backend_->tree_index().find({&view, 1}, column, out);
  });
  for (size_t i = 0; i < n; ++i) {
    uint32_t below = rank_below(keys, queries[i]);
    bool equal = below < keys.size() && keys[below] == queries[i];
    REQUIRE_MESSAGE(found[i] == (equal ? below : Location::absent), i);
    REQUIRE_MESSAGE(located[i].index == (equal ? 0 : Location::absent), i);
    REQUIRE_MESSAGE(located[i].rank == found[i], i);
    REQUIRE_MESSAGE(lower[i] == below, i);
    REQUIRE_MESSAGE(upper[i] == below + equal, i);
    uint32_t last = below;
    while (last < keys.size() && keys[last].starts_with(queries[i])) ++last;
    // Empty prefixes and those of one byte match very many: the count is checked for few queries.
    REQUIRE_MESSAGE(prefixes[i].first == below, i);
    REQUIRE_MESSAGE(prefixes[i].last == last, i);
  }
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.ImagesAreTheHostsBytes", "[ResidentTest]") {
  Random random(seed());
  auto host = Backend::host(2);
  host->tree_index().set_access_costs(
      backend_->tree_index().access_costs());  // so that both choose the same strides
  for (const KeySet& set : key_sets()) {
    for (size_t n : {0, 1, 2, 9, 300, smaller_under_sanitizers(20000, 3000)}) {
      if (set.make == only_zeros || set.make == long_among_short) n = std::min<size_t>(n, 300);
      for (int round = 0; round < 3; ++round) {
        TreeOptions options = round == 0 ? TreeOptions{} : random_options(random);
        INFO(describe(set, n, options));
        Keys keys = set.make(random, n);
        OwnedIndex expected(sorted_unique(keys), true);
        std::vector<std::byte> image, built;
        Status status = host->tree_index().build_tree(expected.column(), options, &image);
        REQUIRE_OK(status);
        OwnedColumn unsorted(keys, true), sorted(expected.keys(), true);
        bool there = random() % 2;
        for (KeyOrder order : {KeyOrder::any, KeyOrder::ascending}) {
          KeyColumn column = (order == KeyOrder::any ? unsorted : sorted).column();
          There copied;
          if (there) {
            copied = copy_to_backend(column);
            column = copied.column;
          }
          auto index = build(column, order, options);
          REQUIRE(index);
          REQUIRE_OK(index->copy_image(&built));
          REQUIRE_MESSAGE((built == image) == true, static_cast<int>(order));
          std::vector<std::byte> rows;
          std::vector<uint64_t> offsets;
          REQUIRE_OK(index->copy_keys(&rows, &offsets));
          REQUIRE(offsets.size() == expected.keys().size() + 1);
          for (size_t i = 0; i < expected.keys().size(); ++i) {
            Bytes row(rows.data() + offsets[i], offsets[i + 1] - offsets[i]);
            REQUIRE_MESSAGE(as_text(row) == expected.keys()[i], i);
          }
          CHECK(index->memory_bytes() >= image.size() + rows.size());
        }
        REQUIRE_OK(backend_->tree_index().build_tree(expected.column(), options, &built));
        REQUIRE((built == image) == true);
      }
    }
  }
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.AgreesWithTheStandardLibrary", "[ResidentTest]") {
  Random random(seed());
  for (const KeySet& set : key_sets()) {
    for (size_t n : {0, 1, 2, 8, 9, 100, 3000}) {
      if (set.make == only_zeros || set.make == long_among_short) n = std::min<size_t>(n, 300);
      for (int round = 0; round < 3; ++round) {
        TreeOptions options = random_options(random);
        INFO(describe(set, n, options));
        Keys keys = set.make(random, n);
        OwnedColumn owned(keys, random() % 4 != 0);
        auto index = build(owned.column(), KeyOrder::any, options);
        REQUIRE(index);
        keys = sorted_unique(keys);
        Keys queries = queries_for(random, keys, 200, random() % 2);
        expect_searches(index->view(), keys, queries, random() % 2, random() % 2, random() % 2);
      }
    }
  }
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.AgreesAtEveryBatchSize", "[ResidentTest]") {
  Random random(seed());
  for (auto make : {random_numbers, fixed_width<4>, fixed_width<16>, words}) {
    Keys keys = sorted_unique(make(random, 20000));
    OwnedColumn owned(keys, true);
    auto index = build(owned.column(), KeyOrder::ascending, {});
    REQUIRE(index);
    for (size_t n : {0, 1, 31, 32, 33, 1000, 4097, smaller_under_tsan(20000, 9000)}) {
      INFO(n);
      Keys queries = queries_for(random, keys, n, true);
      // They are so long that few keys begin with it.
      for (std::string& query : queries)
        if (query.empty()) query = "q";
      expect_searches(index->view(), keys, queries, true, random() % 2, random() % 2);
    }
  }
}

// More than fits one piece of staging memory.
TEST_CASE_METHOD(ResidentTest, "ResidentTest.FindsManyNumbers", "[ResidentTest]") {
  Random random(seed());
  for (auto make : {random_numbers, clusters, exponential}) {
    Keys keys = make(random, smaller_under_sanitizers(200000, 50000));
    OwnedColumn owned(keys, true);
    auto index = build(owned.column(), KeyOrder::any, {});
    REQUIRE(index);
    keys = sorted_unique(keys);
    Keys queries;
    for (int i = 0; i < smaller_under_sanitizers(1500000, 150000); ++i) {
      queries.push_back(i % 3 ? keys[random() % keys.size()] : big_endian(random()));
    }
    for (bool fixed : {true, false}) {
      OwnedColumn asked(queries, fixed);
      auto found = results<uint32_t>(queries.size(), false, [&](auto out) {
        return backend_->tree_index().find_ranks(index->view(), asked.column(), out);
      });
      for (size_t i = 0; i < queries.size(); i += 7) {
        uint32_t below = rank_below(keys, queries[i]);
        bool equal = below < keys.size() && keys[below] == queries[i];
        REQUIRE_MESSAGE(found[i] == (equal ? below : Location::absent), i);
      }
    }
  }
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.TakesTheNewestOfSeveralIndexes", "[ResidentTest]") {
  Random random(seed());
  for (bool numbers : {true, false}) {
    Keys pool = numbers ? random_numbers(random, 5000) : words(random, 5000);
    std::vector<std::unique_ptr<OwnedIndex>> indexes;
    std::vector<std::shared_ptr<ResidentIndex>> resident;
    std::vector<IndexView> views;
    auto host = Backend::host(1);
    for (int i = 0; i < 20; ++i) {
      Keys keys;
      for (size_t k = random() % 1000; k > 0; --k) keys.push_back(pool[random() % pool.size()]);
      if (i % 7 == 3 && random() % 2) keys.push_back("odd one");
      indexes.push_back(std::make_unique<OwnedIndex>(sorted_unique(keys), true));
      OwnedIndex& index = *indexes.back();
      if (i % 5) REQUIRE_OK(host->tree_index().build_tree(index.column(), {}, &index.image()));
      auto made = backend_->tree_index().make_resident(index.view());
      REQUIRE_OK(made);
      resident.push_back(*made);
      // As the engine does it: the host's view, and what is resident beside it.
      IndexView view = index.view();
      view.resident = resident.back().get();
      views.push_back(view);
    }
    Keys queries = queries_for(random, pool, 10000, numbers);
    OwnedColumn owned(queries, true);
    for (int mixed = 0; mixed < 2; ++mixed) {
      if (mixed) views[7].resident = nullptr;  // then the host searches all
      auto out = results<Location>(queries.size(), !mixed, [&](auto room) {
        return backend_->tree_index().find(views, owned.column(), room);
      });
      for (size_t q = 0; q < queries.size(); ++q) {
        uint32_t expected = Location::absent, rank = Location::absent;
        for (uint32_t i = 0; i < indexes.size() && expected == Location::absent; ++i) {
          const Keys& keys = indexes[i]->keys();
          uint32_t below = rank_below(keys, queries[q]);
          if (below == keys.size() || keys[below] != queries[q]) continue;
          expected = i;
          rank = below;
        }
        REQUIRE_MESSAGE(out[q].index == expected, q);
        REQUIRE_MESSAGE(out[q].rank == rank, q);
      }
    }
  }
}

// A query larger than all staging memory is one that no key equals.
TEST_CASE_METHOD(ResidentTest, "ResidentTest.TakesQueriesOfAnyLength", "[ResidentTest]") {
  Keys keys = {"a", "b", "xx"};
  OwnedColumn owned(keys, false);
  auto index = build(owned.column(), KeyOrder::any, {});
  REQUIRE(index);
  Keys queries = {"a", std::string(9 << 20, 'x'), "b", std::string(3 << 20, 'a'), "", "xx"};
  expect_searches(index->view(), keys, queries, false, false, false);
  expect_searches(index->view(), keys, queries, false, true, true);
  queries = {std::string(20 << 20, 'a')};
  expect_searches(index->view(), keys, queries, true, false, false);
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.TakesSlicesOfColumns", "[ResidentTest]") {
  Random random(seed());
  for (auto make : {random_numbers, words}) {
    Keys keys = make(random, 3000);
    OwnedColumn owned(keys, true);
    KeyColumn slice = owned.column().slice(1001, 1500);
    auto index = build(slice, KeyOrder::any, {});
    REQUIRE(index);
    Keys sliced = sorted_unique({keys.begin() + 1001, keys.begin() + 2501});
    std::vector<uint32_t> ranks(slice.size);
    REQUIRE_OK(backend_->tree_index().find_ranks(index->view(), slice, ranks));
    for (size_t i = 0; i < ranks.size(); ++i) {
      REQUIRE_MESSAGE(ranks[i] == rank_below(sliced, keys[1001 + i]), i);
    }
  }
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.MayBeCalledFromManyThreads", "[ResidentTest]") {
  Random random(seed());
  Keys keys = sorted_unique(words(random, 5000));
  OwnedColumn owned(keys, true);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        auto index = backend_->tree_index().build_index(owned.column(), KeyOrder::any, {});
        if (!index.ok()) {
          ++wrong;
          continue;
        }
        std::vector<uint32_t> ranks(keys.size());
        Status status = backend_->tree_index().find_ranks((*index)->view(), owned.column(), ranks);
        wrong += !status.ok();
        for (uint32_t i = 0; i < ranks.size(); ++i) wrong += ranks[i] != i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

// Such as the engine's: on the device, and in host memory too.
TEST_CASE_METHOD(ResidentTest, "ResidentTest.GoesOnWhereOneIndexIsEmpty", "[ResidentTest]") {
  OwnedIndex empty({}, true), other({"a", "b"}, true);
  auto host = Backend::host(1);
  for (OwnedIndex* index : {&empty, &other}) {
    REQUIRE_OK(host->tree_index().build_tree(index->column(), {}, &index->image()));
  }
  auto resident = backend_->tree_index().make_resident(empty.view());
  REQUIRE_OK(resident);
  IndexView views[2] = {empty.view(), other.view()};
  views[0].resident = resident->get();
  OwnedColumn queries({"b", "c"}, true);
  std::vector<Location> found(2);
  REQUIRE_OK(backend_->tree_index().find(views, queries.column(), found));
  CHECK(found[0].index == 1u);
  CHECK(found[0].rank == 1u);
  CHECK_FALSE(found[1].found());
  // Alone on the device: the host cannot search the other one's companion.
  views[0] = (*resident)->view();
  Status status = backend_->tree_index().find(views, queries.column(), found);
  CHECK(status.code() == (backend_->has_device() ? StatusCode::invalid_argument : StatusCode::ok));
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.RefusesWhatIsWrong", "[ResidentTest]") {
  Keys keys = {"a", "b"};
  OwnedColumn owned(keys, true);
  auto index = build(owned.column(), KeyOrder::any, {});
  REQUIRE(index);
  std::vector<uint32_t> ranks(3);
  CHECK(backend_->tree_index().find_ranks(index->view(), owned.column(), ranks).code() ==
        StatusCode::invalid_argument);
  CHECK(backend_->tree_index().upper_bound(index->view(), owned.column(), ranks).code() ==
        StatusCode::invalid_argument);
  std::vector<Location> locations(1);
  IndexView view = index->view();
  CHECK(backend_->tree_index().find({&view, 1}, owned.column(), locations).code() ==
        StatusCode::invalid_argument);
  for (uint32_t stride : {0u, 29u}) {
    auto refused =
        backend_->tree_index().build_index(owned.column(), KeyOrder::any, {.strides = {stride}});
    CHECK_MESSAGE(refused.status().code() == StatusCode::invalid_argument, stride);
  }
  uint64_t number = 0;
  auto refused = backend_->tree_index().build_index(Column::fixed(&number, 8, uint64_t{1} << 32),
                                                    KeyOrder::ascending, {});
  CHECK(refused.status().code() == StatusCode::invalid_argument);
  CHECK(refused.status().message().find("4294967294") != std::string::npos);
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.RefusesADamagedImage", "[ResidentTest]") {
  Random random(seed());
  OwnedIndex index(sorted_unique(random_numbers(random, 3000)), true);
  auto host = Backend::host(1);
  REQUIRE_OK(host->tree_index().build_tree(index.column(), {}, &index.image()));
  CHECK_OK(backend_->tree_index().make_resident(index.view()));
  std::vector<std::byte> sound = index.image();
  for (size_t at : {0, 12, 24, 64, 128, 200}) {
    index.image() = sound;
    index.image()[at] ^= std::byte{0x40};
    CHECK_MESSAGE(backend_->tree_index().make_resident(index.view()).status().code() ==
                      StatusCode::corruption,
                  at);
  }
  index.image() = sound;
  index.image().resize(100);
  CHECK(backend_->tree_index().make_resident(index.view()).status().code() ==
        StatusCode::corruption);
}

TEST_CASE_METHOD(ResidentTest, "ResidentTest.MeasuresItsLimits", "[ResidentTest]") {
  BackendLimits limits;
  REQUIRE_OK(backend_->measure_limits(4 << 20, &limits));
  CHECK(limits.gathers_per_second > 1e6);
  CHECK(limits.copy_bytes_per_second > 1e8);
  CHECK((limits.bus_in_bytes_per_second > 0) == backend_->has_device());
}

TEST_CASE("CudaTest.GoesOnWithTheHostWhereDeviceMemoryEnds", "[CudaTest]") {
  auto device = Backend::cuda({.memory_limit = 1 << 20, .host_threads = 1});
  if (!device.ok()) SKIP(device.status().to_string());
  Backend& backend = **device;
  Random random(seed());
  Keys keys = sorted_unique(random_numbers(random, 200000));
  OwnedIndex host_index(keys, true);
  CHECK(backend.tree_index().make_resident(host_index.view()).status().code() ==
        StatusCode::resource_exhausted);
  CHECK(backend.allocate(2 << 20).status().code() == StatusCode::resource_exhausted);
  OwnedColumn owned(keys, true);
  auto index = backend.tree_index().build_index(owned.column(), KeyOrder::any, {});
  REQUIRE_OK(index);
  CHECK_FALSE((*index)->on_device());
  std::vector<uint32_t> ranks(keys.size());
  REQUIRE_OK(backend.tree_index().find_ranks((*index)->view(), owned.column(), ranks));
  for (uint32_t i = 0; i < keys.size(); ++i) REQUIRE(ranks[i] == i);
  // Queries and results on the device, which the host then searches for.
  auto queries = backend.allocate(800), results = backend.allocate(400);
  REQUIRE((queries.ok() && results.ok()));
  REQUIRE_OK(backend.copy((*queries)->data(), owned.column().data, 800));
  std::span<uint32_t> room(reinterpret_cast<uint32_t*>((*results)->data()), 100);
  Status status = backend.tree_index().find_ranks((*index)->view(),
                                                  Column::fixed((*queries)->data(), 8, 100), room);
  REQUIRE_OK(status);
  std::vector<uint32_t> back(100);
  REQUIRE_OK(backend.copy(back.data(), room.data(), 400));
  for (uint32_t i = 0; i < 100; ++i) REQUIRE(back[i] == i);
  std::vector<std::byte> image, expected;
  REQUIRE_OK(backend.tree_index().build_tree(host_index.column(), {}, &image));
  REQUIRE_OK(Backend::host(1)->tree_index().build_tree(host_index.column(), {}, &expected));
  CHECK((image == expected) == true);
}

TEST_CASE("CudaTest.SaysWhyThereIsNoDevice", "[CudaTest]") {
  auto device = Backend::cuda({.device = 1000});
  REQUIRE_FALSE(device.ok());
  CHECK(device.status().code() == StatusCode::unavailable);
  CHECK(device.status().to_string().find("host backend") != std::string::npos);
  CHECK(Backend::automatic(1) != nullptr);
}

}  // namespace
}  // namespace stride::test
