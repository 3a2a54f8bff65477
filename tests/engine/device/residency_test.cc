// The same random work on the host, on a device and on both at once: the same answers, whatever
// fails on the way. The device is a fake one, and a real one too where there is one.
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/engine/device/residency_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.AnswersAsTheHost", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  for (uint32_t width : {0u, 8u, 11u}) {
    TemporaryDirectory directory;
    auto db = open(directory.file("db"));
    Table table = *db->open_or_create_table("t", {.key_width = width});
    Table other = *db->open_or_create_table("other", {.key_width = width});
    Model model, others;
    for (int round = 0; round < 8; ++round) {
      INFO("width " + std::to_string(width) + ", round " + std::to_string(round));
      REQUIRE_OK(change(*db, table, random, round % 2, &model));
      if (round % 3 == 0) REQUIRE_OK(change(*db, other, random, true, &others));
      if (round == 4) REQUIRE_OK(db->compact());
      if (round == 6) {  // what is read from the file is checked before it goes to the device
        REQUIRE_OK(db->close());
        db = open(directory.file("db"));
        table = *db->open_table("t");
        other = *db->open_table("other");
      }
      expect_lookups(db->snapshot(), table, model, random_queries(random, width));
      expect_lookups(db->snapshot(), other, others, random_queries(random, width));
    }
    if (fake_) {
      CHECK((fake_->searches() > 0) == (setting_.memory > 0));
      CHECK(fake_->used() <= setting_.memory);
    }
  }
}

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.SnapshotsOutliveTheDatabase", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  Model model;
  std::optional<Snapshot> snapshot;
  Table table;
  {
    auto db = open(directory_.file("db"));
    table = *db->open_or_create_table("t");
    REQUIRE_OK(change(*db, table, random, true, &model));
    snapshot = db->snapshot();
    expect_lookups(*snapshot, table, model, random_queries(random, 0));
    REQUIRE_OK(db->drop_table("t"));
    fake_ = nullptr;
    device_ = nullptr;
  }
  expect_lookups(*snapshot, table, model, random_queries(random, 0));
}

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.ReadersMeetOnTheDevice", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  auto db = open(directory_.file("db"));
  Table tables[] = {*db->open_or_create_table("a"), *db->open_or_create_table("b")};
  Model models[2];
  for (int i = 0; i < 6; ++i) REQUIRE_OK(change(*db, tables[i % 2], random, true, &models[i % 2]));
  TestThreads threads;
  for (uint64_t t = 0; t < 4; ++t) {
    uint64_t seed_of_thread = random();
    threads.start([&, t, seed_of_thread] {
      std::mt19937_64 mine(seed_of_thread);
      for (int i = 0; i < 4; ++i)
        expect_lookups(db->snapshot(), tables[t % 2], models[t % 2], random_queries(mine, 0));
    });
  }
  threads.join();
}

// Every call to the device fails once, in the middle of commits and of reads.
TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.FailuresOfTheDeviceAreTheHostsWork",
                 "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
    uint64_t calls_of_all = 0;
    for (uint64_t n = 0; n <= calls_of_all; n += 1 + n / smaller_under_sanitizers(40, 4)) {
      INFO("call " + std::to_string(n));
      TemporaryDirectory directory;
      auto db = open(directory.file("db"));
      Table table = *db->open_or_create_table("t");
      Model model;
      fail_call(n, code);  // 0: none, to count them
      for (int round = 0; round < 2; ++round) {
        REQUIRE_OK(change(*db, table, random, true, &model));
        expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
      }
      if (n == 0) calls_of_all = calls();
      work_again();
      REQUIRE_OK(change(*db, table, random, true, &model));
      expect_lookups(db->snapshot(), table, model, random_queries(random, 0));
      REQUIRE_OK(db->verify());
    }
    if (setting_.memory > 0) CHECK(calls_of_all > 2u);
  }
}

// Numbers, some of them twice, and the value that the last row of each key has.
struct LargeRows {
  static constexpr uint64_t size = 300'000, copies = 20'000;

  explicit LargeRows(std::mt19937_64& random) {
    std::unordered_map<uint64_t, uint64_t> last;
    for (uint64_t i = 0; i < size; ++i) {
      keys[i] = i < size - copies ? random() : keys[random() % 1000];
      values[i] = i;
      last[keys[i]] = i;
    }
    for (uint64_t i = 0; i < size; ++i) expected[i] = last[keys[i]];
    distinct = last.size();
  }
  void commit(Database& db, const Table& table) const {
    WriteTransaction t = db.begin();
    for (uint64_t at = 0; at < size; at += 50'000)
      REQUIRE_OK(t.put(table, KeyColumn::fixed(&keys[at], 8, 50'000),
                       ValueColumn::fixed(&values[at], 8, 50'000)));
    REQUIRE_OK(t.commit());
  }
  void expect_all(const Snapshot& snapshot, const Table& table) const {
    GetResult got;
    REQUIRE_OK(snapshot.get(table, KeyColumn::fixed(keys.data(), 8, size), &got));
    for (uint64_t i = 0; i < size; ++i) {
      REQUIRE_MESSAGE(got.found[i], i);
      uint64_t value;
      std::memcpy(&value, got.values[i].data(), 8);
      REQUIRE_MESSAGE(value == expected[i], i);
    }
    CHECK(*snapshot.count(table) == distinct);
  }

  std::vector<uint64_t> keys = std::vector<uint64_t>(size);
  std::vector<uint64_t> values = keys, expected = keys;
  uint64_t distinct = 0;
};

// A commit that is large enough to be sorted and built on the device.
TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.LargeCommitsGoOnWhereTheDeviceFails",
                 "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  const LargeRows rows(random);
  for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
    for (uint64_t n : {0, 1, 2, 3, 5, 9, 14, 20, 27, 35, 50}) {
      if (under_sanitizer) {  // sees each call fail in one of the two ways
        if (fake_ && n > 3) break;
        if (random() % 2) continue;
        if ((n % 2 == 0) != (code == StatusCode::io_error)) continue;
      }
      INFO("call " + std::to_string(n));
      TemporaryDirectory directory;
      auto db = open(directory.file("db"));
      Table table = *db->open_or_create_table("t", {.key_width = 8});
      fail_call(n, code);
      rows.commit(*db, table);
      rows.expect_all(db->snapshot(), table);
      work_again();
      if (fake_ && n > 3) break;  // it has no more calls
    }
  }
}

// Queries and results in the memory of the device.
class DeviceLookup {
 public:
  DeviceLookup(Backend& device, const std::vector<std::string>& queries) : device_(device) {
    std::string bytes;
    for (const std::string& query : queries) bytes += query;
    there_ = allocate(bytes.size());
    CHECK_OK(device_.copy(there_->data(), bytes.data(), bytes.size()));
    column = KeyColumn::fixed(there_->data(), 8, queries.size());
    locations_ = allocate(queries.size() * sizeof(Location));
    found_ = allocate(queries.size() / 8 + 8);
    offsets_ = allocate((queries.size() + 1) * 8);
    values_ = allocate(value_bytes);
  }
  Status find(const Snapshot& snapshot, const Table& table) {
    return snapshot.find_device(table, column, reinterpret_cast<Location*>(locations_->data()),
                                nullptr);
  }
  Status get(const Snapshot& snapshot, const Table& table) {
    return snapshot.get_device(
        table, column,
        {reinterpret_cast<uint32_t*>(found_->data()), reinterpret_cast<uint64_t*>(offsets_->data()),
         values_->data(), value_bytes},
        nullptr);
  }
  // Brings all that was found to the host.
  void bring() {
    const uint64_t n = column.size;
    at.resize(n);
    bits_.resize(n / 32 + 1);
    ends_.resize(n + 1);
    all_values_.resize(value_bytes);
    REQUIRE_OK(device_.copy(at.data(), locations_->data(), n * sizeof(Location)));
    REQUIRE_OK(device_.copy(bits_.data(), found_->data(), (n + 31) / 32 * 4));
    REQUIRE_OK(device_.copy(ends_.data(), offsets_->data(), ends_.size() * 8));
    REQUIRE_OK(device_.copy(all_values_.data(), values_->data(), all_values_.size()));
  }
  bool found(uint64_t i) const { return bits_[i / 32] >> (i % 32) & 1; }
  std::string value(uint64_t i) const {
    return all_values_.substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

  KeyColumn column;
  std::vector<Location> at;

 private:
  static constexpr uint64_t value_bytes = 1 << 20;

  std::unique_ptr<BackendMemory> allocate(uint64_t bytes) {
    auto memory = device_.allocate(bytes);
    CHECK_OK(memory);
    return std::move(*memory);
  }

  Backend& device_;
  std::unique_ptr<BackendMemory> there_, locations_, found_, offsets_, values_;
  std::vector<uint32_t> bits_;
  std::vector<uint64_t> ends_;
  std::string all_values_;
};

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.CallersMayStayOnTheDevice", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  auto db = open(directory_.file("db"));
  Table table = *db->open_or_create_table("t", {.key_width = 8});
  Model model;
  for (int i = 0; i < 4; ++i) REQUIRE_OK(change(*db, table, random, i % 2, &model));
  std::vector<std::string> queries;
  for (uint64_t i = 0; i < many_queries; ++i) queries.push_back(random_key(random, 8));
  DeviceLookup lookup(*device_, queries);
  Snapshot snapshot = db->snapshot();

  // Results in host memory, wherever the table is.
  GetResult got;
  FindResult refs;
  REQUIRE_OK(snapshot.get(table, lookup.column, &got));
  REQUIRE_OK(snapshot.find(table, lookup.column, &refs));
  if (setting_.memory > 0) {
    std::vector<Location> room(many_queries);
    Status refused = snapshot.find_device(table, lookup.column, room.data(), nullptr);
    CHECK_MESSAGE(refused.code() == StatusCode::invalid_argument, refused.to_string());
  }
  Status located = lookup.find(snapshot, table), status = lookup.get(snapshot, table);
  bool some = setting_.memory > 0, all = setting_.memory == all_memory;
  if (some == all) {
    CHECK(located.code() == (all ? StatusCode::ok : StatusCode::unavailable));
    CHECK(status.ok() == (all && setting_.values == ValuePlacement::device));
  }
  for (const Status& s : {located, status})
    if (!s.ok()) CHECK_MESSAGE(s.code() == StatusCode::unavailable, s.to_string());

  lookup.bring();
  for (uint64_t i = 0; i < many_queries; ++i) {
    auto expected = model.find(queries[i]);
    bool is_there = expected != model.end();
    REQUIRE_MESSAGE(got.found[i] == is_there, i);
    REQUIRE_MESSAGE(refs.found[i] == is_there, i);
    if (is_there) REQUIRE_MESSAGE(text(got.values[i]) == expected->second, i);
    if (is_there) REQUIRE_MESSAGE(text(refs.value(i)) == expected->second, i);
    if (located.ok()) {
      Location at = lookup.at[i];
      REQUIRE_MESSAGE(at.found() == is_there, i);
      if (is_there) REQUIRE_MESSAGE(text(refs.columns[at.index][at.rank]) == expected->second, i);
    }
    if (!status.ok()) continue;
    REQUIRE_MESSAGE(lookup.found(i) == is_there, i);
    if (is_there) REQUIRE_MESSAGE(lookup.value(i) == expected->second, i);
  }
}

TEST_CASE("ResidencyOptionsTest.RefusesALimitBelowAChunk", "[ResidencyOptionsTest]") {
  TemporaryDirectory directory;
  Options options;
  options.gpu_memory_limit_bytes = 1 << 20;
  auto db = Database::open(directory.file("db"), options);
  REQUIRE_FALSE(db.ok());
  CHECK(db.status().code() == StatusCode::invalid_argument);
  CHECK(db.status().to_string().find("gpu_memory_limit_bytes is 1048576") != std::string::npos);
}

TEST_CASE("ResidencyOptionsTest.SaysWhyThereIsNoDevice", "[ResidencyOptionsTest]") {
  if (Backend::cuda().ok()) SKIP("there is one");
  TemporaryDirectory directory;
  Options options;
  options.backend = BackendKind::cuda;
  auto db = Database::open(directory.file("db"), options);
  REQUIRE_FALSE(db.ok());
  CHECK_MESSAGE(db.status().code() == StatusCode::unavailable, db.status().to_string());
  options.backend = BackendKind::automatic;
  auto host = Database::open(directory.file("db"), options);
  REQUIRE_OK(host);
  Table table = *(*host)->open_or_create_table("t");
  Status s = (*host)->snapshot().find_device(table, {}, nullptr, nullptr);
  CHECK_MESSAGE(s.code() == StatusCode::unavailable, s.to_string());
}

}  // namespace
}  // namespace stride::test
