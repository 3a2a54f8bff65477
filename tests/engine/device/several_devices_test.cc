// Databases on several devices: the host's answers, also while devices fail, of which listeners are
// told.
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "engine/event_listener.h"
#include "tests/engine/device/residency_fixture.h"
#include "tests/gpu/several/several_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class Losses : public EventListener {
 public:
  void on_event(const Event& event) override {
    std::lock_guard lock(mutex_);
    if (event.kind == EventKind::device_lost) statuses_.push_back(event.status);
  }
  std::vector<Status> statuses() const {
    std::lock_guard lock(mutex_);
    return statuses_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Status> statuses_;
};

class SeveralDatabaseTest : public SeveralTest {
 protected:
  std::unique_ptr<Database> open(const std::string& path,
                                 ValuePlacement values = ValuePlacement::host) {
    losses_ = std::make_shared<Losses>();
    device_ = devices_.backend();
    Options options;
    options.shared_backend = device_;
    options.value_placement = values;
    options.durability = Durability::none;
    options.event_listener = losses_;
    auto db = Database::open(path, options);
    REQUIRE_OK(db);
    return std::move(*db);
  }

  std::shared_ptr<Losses> losses_;
  std::shared_ptr<Backend> device_;
  TemporaryDirectory directory_;
};

TEST_CASE_METHOD(SeveralDatabaseTest, "SeveralDatabaseTest.AnswersAsTheHost",
                 "[SeveralDatabaseTest]") {
  std::mt19937_64 random(seed());
  const std::tuple<ValuePlacement, uint32_t, bool> cases[] = {
      {ValuePlacement::host, 0, false},  {ValuePlacement::host, 8, true},
      {ValuePlacement::device, 0, true}, {ValuePlacement::device, 8, false},
      {ValuePlacement::device, 8, true}, {ValuePlacement::host, 0, true}};
  for (const auto& [values, width, in_parts] : cases) {
    for (const auto& fake : devices_.fakes()) fake->set_max_keys(in_parts ? 900 : UINT64_MAX);
    TemporaryDirectory directory;
    auto db = open(directory.file("db"), values);
    Table table = *db->open_or_create_table("t", {.key_width = width});
    Model model;
    for (int round = 0; round < 5; ++round) {
      INFO("width " + std::to_string(width) + ", round " + std::to_string(round));
      REQUIRE_OK(change(*db, table, random, round % 2, &model));
      if (round == 3) REQUIRE_OK(db->compact());
      expect_lookups(db->snapshot(), table, model, random_queries(random, width));
    }
    for (const auto& fake : devices_.fakes()) CHECK(fake->searches() > 0u);
    const std::vector<SegmentReport> segments = *db->segments(table);
    for (const SegmentReport& segment : segments) {
      if (segment.device_bytes == 0) continue;
      const std::string& placement = segment.device_placement;
      const std::string of_all = " on each of " + std::to_string(devices_.size()) + " devices";
      if (devices_.size() == 1)
        CHECK(placement == "");
      else
        CHECK((placement == "a copy" + of_all || (in_parts && placement == "a part" + of_all)));
    }
    REQUIRE_OK(db->close());
    CHECK(losses_->statuses().empty());
  }
}

// A device fails in the middle of commits and of reads. Those that are left go on.
TEST_CASE_METHOD(SeveralDatabaseTest, "SeveralDatabaseTest.OthersGoOnWhereOneFails",
                 "[SeveralDatabaseTest]") {
  if (devices_.size() < 2) SKIP("one device");
  std::mt19937_64 random(seed());
  for (size_t device = 0; device < devices_.size(); ++device) {
    uint64_t calls = 0;
    for (uint64_t n = 0; n <= calls; n += 1 + n / smaller_under_sanitizers(10, 2)) {
      INFO("device " + std::to_string(device) + ", call " + std::to_string(n));
      TemporaryDirectory directory;
      auto db = open(directory.file("db"), ValuePlacement::device);
      Table table = *db->open_or_create_table("t");
      Model model;
      devices_.fail_call(device, n, StatusCode::io_error);  // 0: none, to count them
      for (int round = 0; round < 2; ++round) {
        REQUIRE_OK(change(*db, table, random, true, &model));
        expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
      }
      if (n == 0) calls = devices_.calls(device);
      // A real device needs fewer calls once it has streams and memory at hand.
      const bool has_failed = n > 0 && devices_.calls(device) >= n;
      devices_.work_again();
      std::vector<uint64_t> searches;
      for (const auto& fake : devices_.fakes()) searches.push_back(fake->searches());
      for (int round = 0; round < 3; ++round)
        expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
      for (size_t i = 0; i < searches.size(); ++i)
        CHECK((devices_.fakes()[i]->searches() > searches[i]) == (!has_failed || i != device));
      const std::string name = device_->device_states()[device].name;
      CHECK((db->backend_name().find("lost: " + name) != std::string::npos) == has_failed);
      REQUIRE_OK(db->close());
      const std::vector<Status> told = losses_->statuses();
      REQUIRE(told.size() == (has_failed ? 1u : 0u));
      if (has_failed) CHECK_MESSAGE(told[0].message().find(name) == 0, told[0].to_string());
    }
    CHECK(calls > 3u);
  }
}

// Where all of them fail, the host does all that is left.
TEST_CASE_METHOD(SeveralDatabaseTest, "SeveralDatabaseTest.TheHostGoesOnWhereAllFail",
                 "[SeveralDatabaseTest]") {
  if (devices_.fakes().empty()) SKIP("faults of all devices at once");
  std::mt19937_64 random(seed());
  auto db = open(directory_.file("db"), ValuePlacement::device);
  Table table = *db->open_or_create_table("t");
  Model model;
  REQUIRE_OK(change(*db, table, random, true, &model));
  expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
  for (size_t i = 0; i < devices_.size(); ++i) devices_.fail_call(i, 1, StatusCode::io_error);
  expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
  REQUIRE_OK(change(*db, table, random, true, &model));
  expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
  REQUIRE_OK(db->close());
  CHECK(losses_->statuses().size() == devices_.size());
}

TEST_CASE_METHOD(SeveralDatabaseTest, "SeveralDatabaseTest.ReadersMeet", "[SeveralDatabaseTest]") {
  std::mt19937_64 random(seed());
  auto db = open(directory_.file("db"));
  Table table = *db->open_or_create_table("t");
  Model model;
  for (int i = 0; i < 3; ++i) REQUIRE_OK(change(*db, table, random, true, &model));
  TestThreads threads;
  for (int t = 0; t < 3; ++t) {
    const uint64_t seed_of_thread = random();
    threads.start([&, seed_of_thread] {
      std::mt19937_64 mine(seed_of_thread);
      for (int i = 0; i < 3; ++i)
        expect_lookups(db->snapshot(), table, model, random_queries(mine, 0));
    });
  }
  threads.join();
}

TEST_CASE("DevicesOptionTest.SaysWhatIsWrong", "[DevicesOptionTest]") {
  TemporaryDirectory directory;
  auto open = [&](BackendKind backend, std::vector<int> devices) {
    Options options;
    options.backend = backend;
    options.devices = std::move(devices);
    return Database::open(directory.file("db"), options).status();
  };
  for (BackendKind backend : {BackendKind::automatic, BackendKind::cuda}) {
    const Status twice = open(backend, {2, 0, 2});
    CHECK(twice.code() == StatusCode::invalid_argument);
    CHECK_MESSAGE(twice.message() == "device 2 is named twice", twice.to_string());
  }
  const Status missing = open(BackendKind::automatic, {1000});
  CHECK(missing.code() == StatusCode::invalid_argument);
  CHECK_MESSAGE(missing.message().find("device 1000 is not there") == 0, missing.to_string());
  const bool none = !Backend::list_devices().ok();
  CHECK(open(BackendKind::cuda, {1000}).code() ==
        (none ? StatusCode::unavailable : StatusCode::invalid_argument));
  CHECK_OK(open(BackendKind::host, {2, 2}));  // they are not looked at
  if (!none) CHECK_OK(open(BackendKind::cuda, {0}));
}

}  // namespace
}  // namespace stride::test
