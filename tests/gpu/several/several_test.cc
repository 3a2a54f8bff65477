// The same random work on one device, on several and on the host gives the same answers, whatever
// fails on the way.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/gpu/several/several_fixture.h"
#include "tests/gpu/several/several_workload.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

// Sets of numbers, of bytes of one width, and of many lengths.
std::vector<KeySet> some_key_sets() {
  std::vector<KeySet> some;
  for (const KeySet& set : key_sets())
    for (const char* name : {"random_numbers", "clusters", "urls", "fixed4", "fixed16"})
      if (std::string(name) == set.name) some.push_back(set);
  return some;
}

TEST_CASE_METHOD(SeveralTest, "SeveralTest.FindsWhatStdFinds", "[SeveralTest]") {
  Random random(seed());
  for (const KeySet& set : some_key_sets()) {
    for (size_t n : {0, 1, 63, 64, 65, 127, 129, 1000}) {
      INFO(std::string(set.name) + ", " + std::to_string(n) + " queries");
      RankSearches searches(random, set, n, n);
      searches.expect(*backend_, searches.queries());  // the host's work
      searches.make_resident(*backend_);
      searches.expect(*backend_, searches.queries());
      searches.expect_on_device(*backend_);
    }
  }
}

TEST_CASE_METHOD(SeveralTest, "SeveralTest.FindsValuesInRuns", "[SeveralTest]") {
  Random random(seed());
  for (const KeySet& set : some_key_sets()) {
    for (size_t n : {0, 1, 50, 1000}) {
      for (size_t count : {1, 3}) {
        INFO(std::string(set.name) + ", " + std::to_string(n) + " keys in each of " +
             std::to_string(count) + " runs");
        const Runs runs(*backend_, random, set, n, count, true, random() % 60);
        const Keys queries = some_queries(random, runs, set, n * 3);
        const OwnedColumn owned(queries, true);
        expect_blocks(*backend_, runs, queries, owned.column());
        expect_values(*backend_, runs, queries, owned.column());
        const DeviceRows there(*backend_, owned.column());
        expect_blocks(*backend_, runs, queries, there.column);
        expect_values(*backend_, runs, queries, there.column);
        expect_on_device(*backend_, runs, queries, there.column);
      }
    }
  }
}

TEST_CASE_METHOD(SeveralTest, "SeveralTest.MatchesPrefixes", "[SeveralTest]") {
  Random random(seed());
  for (size_t addresses : {0, 1, 64, 65, 1000}) {
    PrefixSearches searches(random, 300, addresses);
    searches.expect(*backend_);
    searches.make_resident(*backend_);
    searches.expect(*backend_);
    searches.expect_on_device(*backend_);
  }
}

// Larger than a chunk of what goes to a device at once.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.LargeBatches", "[SeveralTest]") {
  Random random(seed());
  const KeySet numbers{"numbers", random_numbers};
  const size_t n = smaller_under_sanitizers(300'000, 30'000);
  RankSearches searches(random, numbers, n, n);
  searches.make_resident(*backend_);
  searches.expect(*backend_, searches.queries());
  searches.expect_on_device(*backend_);
  const Runs runs(*backend_, random, numbers, n / 3, 2, true, 40);
  const Keys queries = some_queries(random, runs, numbers, n);
  const OwnedColumn owned(queries, true);
  expect_blocks(*backend_, runs, queries, owned.column());
  expect_values(*backend_, runs, queries, owned.column());
}

// What one device does alone, with columns wherever they lie.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.SortsAndAddsOnOne", "[SeveralTest]") {
  Random random(seed());
  std::vector<uint64_t> keys(5000);
  for (uint64_t& key : keys) key = random();
  Sorted sorted;
  const KeyColumn column = Column::fixed(keys.data(), 8, keys.size());
  REQUIRE_OK(backend_->sorter().sort({&column, 1}, &sorted));
  REQUIRE(sorted.order.size() == keys.size());
  std::vector<uint32_t> targets(keys.size());
  std::vector<uint64_t> sums(100), expected(100);
  for (size_t i = 0; i < keys.size(); ++i) {
    targets[i] = static_cast<uint32_t>(random() % sums.size());
    expected[targets[i]] += keys[i];
  }
  const Numbers sources = Numbers::of(
      std::span<const int64_t>(reinterpret_cast<const int64_t*>(keys.data()), keys.size()));
  const MutableNumbers into =
      MutableNumbers::of(std::span<int64_t>(reinterpret_cast<int64_t*>(sums.data()), sums.size()));
  REQUIRE_OK(backend_->scatter().apply(sources, Indexes::of(targets), into));
  REQUIRE(sums == expected);
  auto prepared = backend_->scatter().prepare(Indexes::of(targets), sums.size(), OutOfRange::error);
  REQUIRE_OK(prepared);
  REQUIRE_OK((*prepared)->apply(sources, into));
  for (uint64_t& sum : expected) sum *= 2;
  REQUIRE(sums == expected);
  auto set = backend_->sets().make_vector_set({.words = 2});
  REQUIRE_OK(set);
  std::vector<uint64_t> ids(keys.size());
  REQUIRE_OK((*set)->find_or_put(column, ids, {}));
  REQUIRE((*set)->size() > 0u);
  auto built = backend_->tree_index().build_index(column, KeyOrder::any, {});
  REQUIRE_OK(built);
  std::vector<uint32_t> ranks(keys.size());
  REQUIRE_OK(backend_->tree_index().find_ranks((*built)->view(), column, ranks));
  for (uint32_t rank : ranks) REQUIRE(rank < keys.size());
}

// Memory of any device to that of any other, and to the host's.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.CopiesBetweenDevices", "[SeveralTest]") {
  Random random(seed());
  const std::string bytes = random_bytes(random, 5'000'000);
  for (const auto& from : devices_.devices()) {
    auto source = copy_to_backend(*from, bytes.data(), bytes.size());
    for (const auto& to : devices_.devices()) {
      auto target = to->allocate(bytes.size());
      REQUIRE_OK(target);
      REQUIRE(backend_->is_on_device((*target)->data() + bytes.size() - 1));
      REQUIRE_OK(backend_->copy((*target)->data(), source->data(), bytes.size()));
      std::string back(bytes.size(), '\0');
      REQUIRE_OK(backend_->copy(back.data(), (*target)->data(), bytes.size()));
      REQUIRE(back == bytes);
    }
  }
  REQUIRE_FALSE(backend_->is_on_device(bytes.data()));
}

// Queries on each of the devices in turn.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.QueriesOnAnyDevice", "[SeveralTest]") {
  Random random(seed());
  for (const KeySet& set : some_key_sets()) {
    RankSearches searches(random, set, 500, 1000);
    searches.make_resident(*backend_);
    for (const auto& device : devices_.devices()) {
      const DeviceRows rows(*device, searches.queries());
      searches.expect(*backend_, rows.column);
    }
  }
}

// Indexes that are too large for a fake device, or are to be, are in parts, those of some runs
// among others.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.SearchesIndexesInParts", "[SeveralTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  const std::unique_ptr<Backend> backend = devices_.backend_in_parts();
  for (const KeySet& set : some_key_sets()) {
    INFO(std::string(set.name));
    RankSearches searches(random, set, 1000, 700);
    searches.make_resident(*backend);
    searches.expect(*backend, searches.queries());
    searches.expect_on_device(*backend);
    for (size_t count : {1, 3}) {
      const Runs runs(*backend, random, set, 1000, count, true, random() % 60);
      const Keys queries = some_queries(random, runs, set, 2000);
      const OwnedColumn owned(queries, true);
      expect_blocks(*backend, runs, queries, owned.column());
      expect_values(*backend, runs, queries, owned.column());
      const DeviceRows there(*backend, owned.column());
      expect_blocks(*backend, runs, queries, there.column);
      expect_values(*backend, runs, queries, there.column);
    }
  }
}

// Ascending keys in host memory, spread over the devices, or on each of them, whose index is built
// in parts.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.BuildsIndexesInParts", "[SeveralTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  const std::unique_ptr<Backend> backend = devices_.backend_in_parts();
  std::vector<Backend*> places = {nullptr, backend.get()};
  for (const auto& device : devices_.devices()) places.push_back(device.get());
  for (uint32_t width : {8, 13}) {
    for (size_t n : {size_t{10}, size_t{1000}, 650 * devices_.size()}) {
      auto make = [&](size_t count) {
        Keys made;
        while (made.size() < count) made.push_back(random_bytes(random, width));
        return made;
      };
      const Keys keys = sorted_unique(make(n));
      Keys queries = make(500);
      for (size_t i = 0; i < 1000; ++i) queries.push_back(keys[random() % keys.size()]);
      const OwnedColumn owned(keys, true), asked(queries, true);
      for (Backend* place : places) {
        std::unique_ptr<BackendMemory> memory;
        KeyColumn column = owned.column();
        if (place) {
          memory = copy_to_backend(*place, column.data, column.bytes());
          column.data = memory->data();
        }
        auto built = backend->tree_index().build_index(column, KeyOrder::ascending, {});
        REQUIRE_OK(built);
        const std::string in_parts = "a part on each of " + std::to_string(devices_.size());
        if (n > 700) CHECK((*built)->placement().starts_with(in_parts));
        std::vector<uint32_t> found(queries.size()), lower(queries.size());
        REQUIRE_OK(backend->tree_index().find_ranks((*built)->view(), asked.column(), found));
        REQUIRE_OK(backend->tree_index().lower_bound((*built)->view(), asked.column(), lower));
        for (size_t i = 0; i < queries.size(); ++i) {
          const uint32_t rank = rank_below(keys, queries[i]);
          const bool is_there = rank < keys.size() && keys[rank] == queries[i];
          REQUIRE(found[i] == (is_there ? rank : Location::absent));
          REQUIRE(lower[i] == rank);
        }
      }
    }
  }
}

// A part that is lost with its device is searched on the host.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.TheHostDoesLostParts", "[SeveralTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (uint64_t call : {1, 2, 3, 4, 7, 12, 20, 31}) {
      auto backend = devices_.backend_in_parts();
      RankSearches searches(random, {"numbers", random_numbers}, 1000, 700);
      searches.make_resident(*backend);
      devices_.fail_call(device, call, StatusCode::io_error);
      searches.expect(*backend, searches.queries());
      CHECK(backend->lost_devices() == (devices_.calls(device) >= call ? 1u : 0u));
      devices_.work_again();
      searches.expect(*backend, searches.queries());
    }
  }
}

// The same on one real device that plays two, whose memory limit is too low for the whole.
TEST_CASE("SeveralDevicesTest.PartsOnRealDevices", "[SeveralDevicesTest]") {
  const SeveralDevices devices({"2 of one device", 2, SeveralKind::Of::one_device},
                               uint64_t{96} << 20);
  if (!devices.missing().empty()) SKIP(devices.missing());
  auto backend = devices.backend();
  Random random(seed());
  std::vector<uint64_t> keys(10'000'000), queries(1'000'000);
  for (uint64_t& key : keys) key = random();
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (uint64_t& query : queries) query = random() % 2 ? keys[random() % keys.size()] : random();
  auto stored = [](std::vector<uint64_t> numbers) {
    for (uint64_t& number : numbers) number = __builtin_bswap64(number);
    return numbers;
  };
  const std::vector<uint64_t> stored_keys = stored(keys), stored_queries = stored(queries);
  IndexView index;
  index.keys = {.data = reinterpret_cast<const std::byte*>(stored_keys.data()),
                .data_bytes = keys.size() * 8,
                .size = keys.size(),
                .width = 8};
  std::vector<std::byte> image;
  REQUIRE_OK(Backend::host(2)->tree_index().build_tree(index.keys, {}, &image));
  index.tree = {image.data(), image.size()};
  auto resident = backend->tree_index().make_resident(index);
  REQUIRE_OK(resident);
  std::vector<uint32_t> ranks(queries.size());
  const KeyColumn column = Column::fixed(stored_queries.data(), 8, queries.size());
  // Where the host has none of the index, devices alone can have searched it.
  REQUIRE((*resident)->view().keys.data == nullptr);
  REQUIRE_OK(backend->tree_index().lower_bound((*resident)->view(), column, ranks));
  for (size_t i = 0; i < queries.size(); ++i)
    REQUIRE_MESSAGE(
        ranks[i] == std::lower_bound(keys.begin(), keys.end(), queries[i]) - keys.begin(), i);
  REQUIRE_OK(backend->tree_index().find_ranks((*resident)->view(), column, ranks));
  for (size_t i = 0; i < queries.size(); ++i) {
    const bool is_there = std::binary_search(keys.begin(), keys.end(), queries[i]);
    REQUIRE_MESSAGE((ranks[i] != Location::absent) == is_there, i);
    if (is_there) REQUIRE_MESSAGE(keys[ranks[i]] == queries[i], i);
  }
}

// All that is searched, once more after a device has failed.
struct AllSearches {
  AllSearches(Backend& backend, Random& random)
      : ranks(random, {"numbers", random_numbers}, 600, 1000),
        prefixes(random, 200, 1000),
        runs(backend, random, {"numbers", random_numbers}, 300, 2, true, 30),
        queries(some_queries(random, runs, {"numbers", random_numbers}, 900)),
        owned(queries, true) {
    ranks.make_resident(backend);
    prefixes.make_resident(backend);
  }
  void expect(Backend& backend) const {
    ranks.expect(backend, ranks.queries());
    prefixes.expect(backend);
    expect_blocks(backend, runs, queries, owned.column());
    expect_values(backend, runs, queries, owned.column());
  }

  RankSearches ranks;
  PrefixSearches prefixes;
  Runs runs;
  Keys queries;
  OwnedColumn owned;
};

TEST_CASE_METHOD(SeveralTest, "SeveralTest.OthersDoWhatADeviceFailsToDo", "[SeveralTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
      uint64_t calls = 0;
      for (uint64_t n = 0; n <= calls; n += 1 + n / smaller_under_sanitizers(20, 3)) {
        INFO("device " + std::to_string(device) + ", call " + std::to_string(n));
        auto backend = devices_.backend();
        const AllSearches searches(*backend, random);
        devices_.fail_call(device, n, code);  // 0: none, to count them
        // What does not fit on a fake device the engine's host would do.
        if (code == StatusCode::resource_exhausted && !devices_.fakes().empty()) break;
        if (code == StatusCode::resource_exhausted) {
          searches.ranks.expect(*backend, searches.ranks.queries());
          searches.prefixes.expect(*backend);
        } else {
          searches.expect(*backend);
        }
        const uint64_t made = devices_.calls(device);
        if (n == 0) calls = made;
        INFO("of " + std::to_string(made));
        // Which thread of a device's does what is not always the same, and so are the calls. The
        // last one may be of those that nobody waits for.
        const bool is_reached = n > 0 && code == StatusCode::io_error && made >= n;
        const bool is_one_lost = is_reached && (made > n || backend->lost_devices() == 1);
        CHECK(backend->lost_devices() == is_one_lost);
        devices_.work_again();
        searches.expect(*backend);
        const std::vector<DeviceState> states = backend->device_states();
        REQUIRE(states.size() == devices_.size());
        for (size_t i = 0; i < states.size(); ++i) {
          const bool is_lost = i == device && is_one_lost;
          CHECK(states[i].lost.ok() == !is_lost);
          if (is_lost) CHECK(states[i].lost.message().find(states[i].name) != std::string::npos);
        }
      }
      if (code == StatusCode::io_error) CHECK(calls > 3u);
    }
  }
}

TEST_CASE_METHOD(SeveralTest, "SeveralTest.SaysWhenNoDeviceIsLeft", "[SeveralTest]") {
  if (devices_.fakes().empty()) SKIP("faults of all devices at once");
  Random random(seed());
  const AllSearches searches(*backend_, random);
  for (size_t i = 0; i < devices_.size(); ++i) devices_.fail_call(i, 1, StatusCode::io_error);
  std::vector<uint32_t> ranks(searches.ranks.queries().size);
  for (int again = 0; again < 2; ++again) {
    const Status status =
        backend_->tree_index().find_ranks(searches.ranks.view(), searches.ranks.queries(), ranks);
    CHECK(status.code() == StatusCode::io_error);
  }
  CHECK(backend_->lost_devices() == devices_.size());
  auto made = backend_->tree_index().make_resident(searches.ranks.view());
  CHECK(made.status().code() == StatusCode::io_error);
}

// A device that fails while something is copied to it is left out, and the copy lies on the others.
TEST_CASE_METHOD(SeveralTest, "SeveralTest.BecomesResidentWithoutTheDeviceThatFails",
                 "[SeveralTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  for (size_t device = 0; device < devices_.size(); ++device) {
    auto backend = devices_.backend();
    RankSearches searches(random, {"urls", urls}, 300, 700);
    devices_.fail_call(device, 1, StatusCode::io_error);
    searches.make_resident(*backend);
    CHECK(backend->lost_devices() == 1u);
    devices_.work_again();
    searches.expect(*backend, searches.queries());
    searches.expect_on_device(*backend);
  }
}

TEST_CASE_METHOD(SeveralTest, "SeveralTest.CallersMeet", "[SeveralTest]") {
  Random random(seed());
  const AllSearches searches(*backend_, random);
  TestThreads threads;
  for (int t = 0; t < 4; ++t)
    threads.start([&] {
      std::vector<uint32_t> ranks(searches.ranks.queries().size);
      for (int i = 0; i < 20; ++i)
        CHECK_OK(backend_->tree_index().lower_bound(searches.ranks.view(), searches.ranks.queries(),
                                                    ranks));
    });
  threads.join();
  searches.expect(*backend_);
}

// Small batches go to each device in turn, larger ones to all of them.
TEST_CASE("SeveralDevicesTest.SharesAreEqual", "[SeveralDevicesTest]") {
  const SeveralDevices devices({"4 fakes", 4, SeveralKind::Of::fakes});
  auto backend = devices.backend({.min_share = 1000, .min_device_share = 1000});
  Random random(seed());
  RankSearches searches(random, {"numbers", random_numbers}, 100, 4000);
  searches.make_resident(*backend);
  std::vector<uint32_t> ranks(4000);
  auto searched = [&](uint64_t queries) {
    std::vector<uint64_t> counts;
    for (const auto& fake : devices.fakes()) counts.push_back(fake->searches());
    REQUIRE_OK(backend->tree_index().find_ranks(searches.view(),
                                                searches.queries().slice(0, queries),
                                                std::span<uint32_t>(ranks).first(queries)));
    uint64_t devices_used = 0;
    for (size_t i = 0; i < counts.size(); ++i)
      devices_used += devices.fakes()[i]->searches() - counts[i];
    return devices_used;
  };
  CHECK(searched(1) == 1u);
  CHECK(searched(1999) == 1u);
  CHECK(searched(2000) == 2u);
  CHECK(searched(3999) == 3u);
  CHECK(searched(4000) == 4u);
  for (const auto& fake : devices.fakes()) CHECK(fake->searches() > 0u);
}

TEST_CASE("SeveralDevicesTest.WhatIsTooLargeEvenInPartsIsOnNone", "[SeveralDevicesTest]") {
  auto large = std::make_shared<FakeDevice>(1 << 20), small = std::make_shared<FakeDevice>(1000);
  auto backend = Backend::several({large, small}, small_shares);
  REQUIRE_OK(backend);
  Random random(seed());
  const OwnedIndex index(sorted_unique(random_numbers(random, 500)), true);
  auto made = (*backend)->tree_index().make_resident(index.view());
  CHECK(made.status().code() == StatusCode::resource_exhausted);
  CHECK(large->used() == 0u);
  CHECK((*backend)->lost_devices() == 0u);
}

TEST_CASE("SeveralDevicesTest.RefusesWhatIsNoDevice", "[SeveralDevicesTest]") {
  auto code = [](const auto& made) { return made.status().code(); };
  CHECK(code(Backend::several({})) == StatusCode::invalid_argument);
  CHECK(code(Backend::several({Backend::host(1)})) == StatusCode::invalid_argument);
  CHECK(code(Backend::several({nullptr})) == StatusCode::invalid_argument);
  CHECK(code(Backend::devices({.devices = {0, 1, 0}})) == StatusCode::invalid_argument);
  CHECK(Backend::check_devices({3, 3}).message() == "device 3 is named twice");
  CHECK(Backend::check_devices({-1}).code() == StatusCode::invalid_argument);
  CHECK(Backend::check_devices({1000}).message().find("device 1000 is not there") == 0);
  CHECK_OK(Backend::check_devices({}));
  auto there = Backend::list_devices();
  if (!there.ok()) {
    CHECK(code(there) == StatusCode::unavailable);
    CHECK(code(Backend::devices()) == StatusCode::unavailable);
    return;
  }
  CHECK(code(Backend::devices({.devices = {1000}})) == StatusCode::invalid_argument);
  auto one = Backend::devices({.devices = {0}});
  REQUIRE_OK(one);
  CHECK((*one)->device_states().empty());
}

TEST_CASE("SeveralDevicesTest.NamesAllDevices", "[SeveralDevicesTest]") {
  const SeveralDevices devices({"2 fakes", 2, SeveralKind::Of::fakes});
  auto backend = devices.backend();
  CHECK(backend->name() == "fake 0 + fake 1");
  RankSearches searches(*std::make_unique<Random>(seed()), {"numbers", random_numbers}, 100, 300);
  searches.make_resident(*backend);
  devices.fail_call(0, 1, StatusCode::io_error);
  searches.expect(*backend, searches.queries());
  CHECK(backend->name() == "fake 1; lost: fake 0");
}

}  // namespace
}  // namespace stride::test
