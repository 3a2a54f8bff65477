// The same random work on the host, on a device and on both at once: the same answers, whatever
// fails on the way. The device is a fake one, and a real one too where there is one.

#include <functional>

#include "gpu/device/device_faults.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

constexpr uint64_t all_memory = uint64_t{1} << 40;
constexpr uint64_t many_queries = 1500;

// What the tests vary.
struct Setting {
  const char* name;
  bool real;
  ValuePlacement values;
  uint64_t memory;  // of a fake device
};

constexpr ValuePlacement on_host = ValuePlacement::host, on_device = ValuePlacement::device;

class ResidencyTest {
 protected:
  const Setting setting_ = GENERATE(Setting{"fake", false, on_host, all_memory},
                                    Setting{"fake_values", false, on_device, all_memory},
                                    Setting{"fake_small", false, on_host, 100'000},
                                    Setting{"fake_small_values", false, on_device, 160'000},
                                    Setting{"fake_none", false, on_device, 0},
                                    Setting{"cuda", true, on_host, all_memory},
                                    Setting{"cuda_values", true, on_device, all_memory});
  RunsWith name_{setting_.name};

  ResidencyTest() {
    if (setting_.real) {
      auto device = Backend::cuda({.host_threads = 2});
      if (!device.ok()) SKIP(device.status().to_string());
      device_ = std::move(*device);
    } else {
      fake_ = std::make_shared<FakeDevice>(setting_.memory);
      device_ = fake_;
    }
  }
  ~ResidencyTest() { DeviceFaults::clear(); }

  std::unique_ptr<Database> open(const std::string& path) {
    Options options;
    options.shared_backend = device_;
    options.value_placement = setting_.values;
    options.durability = Durability::none;
    auto db = Database::open(path, options);
    CHECK_OK(db);
    return db.ok() ? std::move(*db) : nullptr;
  }
  // The n-th call to the device fails.
  void fail_call(uint64_t n, StatusCode code) {
    if (fake_) {
      fake_->fail_call(n, code);
    } else {
      DeviceFaults::fail_call(
          n, code == StatusCode::io_error ? DeviceFault::lost : DeviceFault::out_of_memory);
    }
  }
  void work_again() {
    if (fake_) fake_->fail_call(0, StatusCode::io_error);
    DeviceFaults::clear();
  }
  uint64_t calls() const { return fake_ ? fake_->calls() : DeviceFaults::calls(); }

  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<Backend> device_;
  TemporaryDirectory directory_;
};

std::string random_key(std::mt19937_64& random, uint32_t width) {
  uint64_t n = random() % 9000;
  std::string key = std::to_string(n * 7919 % 9000);
  if (width) key = std::string(width - std::min<size_t>(width, key.size()), '0') + key;
  return width ? key.substr(0, width) : key + std::string(n % 13, 'x');
}

std::string random_value(std::mt19937_64& random, bool fixed) {
  return std::string(fixed ? 12 : random() % 40, static_cast<char>('a' + random() % 26));
}

// Some thousand changes in one commit.
Status change(Database& db, const Table& table, std::mt19937_64& random, bool fixed, Model* model) {
  WriteTransaction t = db.begin();
  Model after = *model;
  std::vector<std::string> puts, values, erased;
  for (uint64_t i = 500 + random() % 3000; i > 0; --i) {
    std::string key = random_key(random, table.key_width());
    if (random() % 5 == 0) {
      erased.push_back(key);
      after.erase(key);
    } else {
      puts.push_back(key);
      values.push_back(random_value(random, fixed));
    }
  }
  for (size_t i = 0; i < puts.size(); ++i) after[puts[i]] = values[i];
  STRIDE_TRY(t.erase(table, Rows(erased).column()));
  STRIDE_TRY(t.put(table, Rows(puts).column(), Rows(values).column()));
  Status s = t.commit();
  if (s.ok()) *model = std::move(after);
  return s;
}

std::vector<std::string> random_queries(std::mt19937_64& random, uint32_t width) {
  std::vector<std::string> queries;
  for (uint64_t i = 0; i < many_queries; ++i) queries.push_back(random_key(random, width));
  queries[7] = "";
  queries[8] = std::string(300, 'z');
  return queries;
}

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
    for (uint64_t n = 0; n <= calls_of_all; n += 1 + n / 40) {
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

// Addresses of a batch that goes to the device, and their answers on the host.
class ManyMatches {
 public:
  explicit ManyMatches(std::mt19937_64& random) {
    for (uint32_t& address : addresses_) address = static_cast<uint32_t>(random());
  }
  KeyColumn column() const { return KeyColumn::fixed(addresses_.data(), 4, addresses_.size()); }
  void expect_equal(const Snapshot& snapshot, const Table& table, const Snapshot& other,
                    const Table& table_there) const {
    MatchResult here, there;
    REQUIRE_OK(snapshot.match(table, column(), &here));
    REQUIRE_OK(other.match(table_there, column(), &there));
    for (uint64_t i = 0; i < addresses_.size(); ++i) {
      REQUIRE_MESSAGE(here.found[i] == there.found[i], i);
      if (!here.found[i]) continue;
      REQUIRE_MESSAGE(as_text(here.prefix(i)) == as_text(there.prefix(i)), i);
      REQUIRE_MESSAGE(as_text(here.value(i)) == as_text(there.value(i)), i);
      REQUIRE_MESSAGE(here.lengths[i] == there.lengths[i], i);
    }
  }

 private:
  std::vector<uint32_t> addresses_ = std::vector<uint32_t>(70'000);
};

// The same changes of prefixes in two databases.
void change_prefixes(std::mt19937_64& random, uint64_t n, Database& a, const Table& in_a,
                     Database& b, const Table& in_b) {
  WriteTransaction to_a = a.begin(), to_b = b.begin();
  for (uint64_t i = 0; i < n; ++i) {
    uint32_t length = random() % 25;
    auto address = static_cast<uint32_t>(random());
    std::string key(reinterpret_cast<const char*>(&address), 4);
    clear_host_bits(reinterpret_cast<std::byte*>(key.data()), 4, length);
    key += static_cast<char>(length);
    bool erase = random() % 4 == 0;
    std::string value = std::to_string(random() % 1000);
    REQUIRE_OK(erase ? to_a.erase(in_a, key) : to_a.put(in_a, key, value));
    REQUIRE_OK(erase ? to_b.erase(in_b, key) : to_b.put(in_b, key, value));
  }
  REQUIRE_OK(to_a.commit());
  REQUIRE_OK(to_b.commit());
}

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.PrefixesMatchAsOnTheHost", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  ManyMatches matches(random);
  Options on_host;
  on_host.backend = BackendKind::host;
  on_host.durability = Durability::none;
  on_host.threads = 2;
  for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
    uint64_t calls_of_all = 0;
    for (uint64_t n = 0; n <= calls_of_all; n += 1 + n / 8) {
      INFO("call " + std::to_string(n));
      TemporaryDirectory directory;
      auto db = open(directory.file("db"));
      auto opened = Database::open(directory.file("host"), on_host);
      REQUIRE_OK(opened);
      Database* host = opened->get();
      Table table = *db->create_table("t", {.address_bits = 32});
      Table there = *host->create_table("t", {.address_bits = 32});
      change_prefixes(random, 20'000, *db, table, *host, there);
      fail_call(n, code);  // 0: none, to count them
      for (int round = 0; round < 3; ++round) {
        matches.expect_equal(db->snapshot(), table, host->snapshot(), there);
        change_prefixes(random, 200, *db, table, *host, there);
      }
      if (n == 0) calls_of_all = calls();
      work_again();
      REQUIRE_OK(db->compact());  // a new base
      matches.expect_equal(db->snapshot(), table, host->snapshot(), there);
    }
    CHECK(calls_of_all > 0u);
    if (fake_) CHECK(fake_->used() == 0u);
  }
}

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.PrefixesOfAddressesOnTheDevice", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  constexpr uint64_t n = 3000;
  for (uint32_t bits : {32u, 128u, byte_strings}) {
    INFO(bits);
    TemporaryDirectory directory;
    auto db = open(directory.file("db"));
    Table table = *db->create_table("t", {.address_bits = bits});
    uint32_t bytes = bits == byte_strings ? 5 : address_bytes(bits);
    // Few first bytes, so that many addresses have prefixes.
    auto address = [&] {
      std::string a;
      for (uint32_t i = 0; i < bytes; ++i) a += static_cast<char>(random() % (i < 2 ? 3 : 256));
      return a;
    };
    std::string all;
    for (uint64_t i = 0; i < n; ++i) all += address();
    auto allocate = [&](uint64_t size) {
      auto memory = device_->allocate(size);
      CHECK_OK(memory);
      return std::move(*memory);
    };
    auto there = allocate(all.size()), room = allocate(n * sizeof(Location));
    REQUIRE_OK(device_->copy(there->data(), all.data(), all.size()));
    KeyColumn column = KeyColumn::fixed(there->data(), bytes, n);
    auto* out = reinterpret_cast<Location*>(room->data());
    // An empty table, one segment, changes over it, and a new base of several segments.
    for (int round = 0; round < 5; ++round) {
      Snapshot snapshot = db->snapshot();
      Status s = snapshot.match_device(table, column, out, nullptr);
      if (bits == byte_strings || setting_.memory != all_memory) {
        CHECK_MESSAGE(!(s.ok() && bits == byte_strings), s.to_string());
      } else {
        REQUIRE_OK(s);
      }
      if (s.ok()) {
        std::vector<Location> locations(n);
        REQUIRE_OK(device_->copy(locations.data(), out, n * sizeof(Location)));
        MatchResult expected;
        REQUIRE_OK(snapshot.match(table, KeyColumn::fixed(all.data(), bytes, n), &expected));
        for (uint64_t i = 0; i < n; ++i) {
          REQUIRE_MESSAGE(locations[i].found() == expected.found[i], i);
          if (!expected.found[i]) continue;
          CHECK_MESSAGE(locations[i].index == expected.locations[i].index, i);
          CHECK_MESSAGE(locations[i].rank == expected.locations[i].rank, i);
        }
      }
      WriteTransaction t = db->begin();
      for (int i = 0; i < (round == 0 ? 400 : 60); ++i) {
        std::string key = address();
        auto length = static_cast<uint32_t>(random() % (bits == byte_strings ? 40 : 25));
        if (bits == byte_strings) {
          key.resize(length / 8);
        } else {
          clear_host_bits(reinterpret_cast<std::byte*>(key.data()), bytes, length);
          key += static_cast<char>(length);
        }
        REQUIRE_OK(random() % 3 ? t.put(table, key, "v") : t.erase(table, key));
      }
      REQUIRE_OK(t.commit());
      if (round == 3) REQUIRE_OK(db->compact());
    }
    static Location here[n];
    CHECK(db->snapshot().match_device(table, column, here, nullptr).code() ==
          StatusCode::invalid_argument);
    CHECK(db->snapshot()
              .match_device(table, KeyColumn::fixed(there->data(), 3, 5), out, nullptr)
              .ok() == false);
  }
}

// A commit that is large enough to be sorted and built on the device.
TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.LargeCommitsGoOnWhereTheDeviceFails",
                 "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  constexpr uint64_t rows = 300'000, copies = 20'000;
  std::vector<uint64_t> keys(rows), values(rows);
  std::map<uint64_t, uint64_t> model;
  for (uint64_t i = 0; i < rows; ++i) {
    keys[i] = i < rows - copies ? random() : keys[random() % 1000];
    values[i] = i;
    model[keys[i]] = i;
  }
  for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
    for (uint64_t n : {0, 1, 2, 3, 5, 9, 14, 20, 27, 35, 50}) {
      INFO("call " + std::to_string(n));
      TemporaryDirectory directory;
      auto db = open(directory.file("db"));
      Table table = *db->open_or_create_table("t", {.key_width = 8});
      fail_call(n, code);
      WriteTransaction t = db->begin();
      for (uint64_t at = 0; at < rows; at += 50'000)
        REQUIRE_OK(t.put(table, KeyColumn::fixed(&keys[at], 8, 50'000),
                         ValueColumn::fixed(&values[at], 8, 50'000)));
      REQUIRE_OK(t.commit());
      GetResult got;
      REQUIRE_OK(db->snapshot().get(table, KeyColumn::fixed(keys.data(), 8, rows), &got));
      for (uint64_t i = 0; i < rows; ++i) {
        REQUIRE_MESSAGE(got.found[i], i);
        uint64_t value;
        std::memcpy(&value, got.values[i].data(), 8);
        REQUIRE_MESSAGE(value == model[keys[i]], i);
      }
      CHECK(*db->snapshot().count(table) == model.size());
      work_again();
      if (fake_ && n > 3) break;  // it has no more calls
    }
  }
}

// Queries and results in the memory of the device.
TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.CallersMayStayOnTheDevice", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  auto db = open(directory_.file("db"));
  Table table = *db->open_or_create_table("t", {.key_width = 8});
  Model model;
  for (int i = 0; i < 4; ++i) REQUIRE_OK(change(*db, table, random, i % 2, &model));
  std::vector<std::string> queries;
  std::string bytes;
  for (uint64_t i = 0; i < many_queries; ++i) {
    queries.push_back(random_key(random, 8));
    bytes += queries.back();
  }
  auto allocate = [&](uint64_t size) {
    auto memory = device_->allocate(size);
    CHECK_OK(memory);
    return std::move(*memory);
  };
  auto there = allocate(bytes.size());
  REQUIRE_OK(device_->copy(there->data(), bytes.data(), bytes.size()));
  KeyColumn column = KeyColumn::fixed(there->data(), 8, many_queries);
  Snapshot snapshot = db->snapshot();

  // Results in host memory, wherever the table is.
  GetResult got;
  FindResult refs;
  REQUIRE_OK(snapshot.get(table, column, &got));
  REQUIRE_OK(snapshot.find(table, column, &refs));

  auto locations = allocate(many_queries * sizeof(Location));
  auto found = allocate(many_queries / 8 + 8), offsets = allocate((many_queries + 1) * 8);
  auto values = allocate(1 << 20);
  if (setting_.memory > 0) {
    std::vector<Location> room(many_queries);
    Status refused = snapshot.find_device(table, column, room.data(), nullptr);
    CHECK_MESSAGE(refused.code() == StatusCode::invalid_argument, refused.to_string());
  }
  Status located =
      snapshot.find_device(table, column, reinterpret_cast<Location*>(locations->data()), nullptr);
  Status status =
      snapshot.get_device(table, column,
                          {reinterpret_cast<uint32_t*>(found->data()),
                           reinterpret_cast<uint64_t*>(offsets->data()), values->data(), 1 << 20},
                          nullptr);
  bool some = setting_.memory > 0, all = setting_.memory == all_memory;
  bool with_values = status.ok();
  if (some == all) {
    CHECK(located.code() == (all ? StatusCode::ok : StatusCode::unavailable));
    CHECK(with_values == (all && setting_.values == ValuePlacement::device));
  }
  for (const Status& s : {located, status})
    if (!s.ok()) CHECK_MESSAGE(s.code() == StatusCode::unavailable, s.to_string());

  std::vector<Location> at(many_queries);
  std::vector<uint32_t> bits(many_queries / 32 + 1);
  std::vector<uint64_t> ends(many_queries + 1);
  std::string bytes_of_all(1 << 20, 0);
  REQUIRE_OK(device_->copy(at.data(), locations->data(), many_queries * sizeof(Location)));
  REQUIRE_OK(device_->copy(bits.data(), found->data(), (many_queries + 31) / 32 * 4));
  REQUIRE_OK(device_->copy(ends.data(), offsets->data(), ends.size() * 8));
  REQUIRE_OK(device_->copy(bytes_of_all.data(), values->data(), bytes_of_all.size()));
  for (uint64_t i = 0; i < many_queries; ++i) {
    auto expected = model.find(queries[i]);
    bool is_there = expected != model.end();
    REQUIRE_MESSAGE(got.found[i] == is_there, i);
    REQUIRE_MESSAGE(refs.found[i] == is_there, i);
    if (is_there) REQUIRE_MESSAGE(text(got.values[i]) == expected->second, i);
    if (is_there) REQUIRE_MESSAGE(text(refs.value(i)) == expected->second, i);
    if (located.ok()) {
      REQUIRE_MESSAGE(at[i].found() == is_there, i);
      if (is_there)
        REQUIRE_MESSAGE(text(refs.columns[at[i].index][at[i].rank]) == expected->second, i);
    }
    if (!with_values) continue;
    REQUIRE_MESSAGE((bits[i / 32] >> (i % 32) & 1) == is_there, i);
    if (is_there)
      REQUIRE_MESSAGE(bytes_of_all.substr(ends[i], ends[i + 1] - ends[i]) == expected->second, i);
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
