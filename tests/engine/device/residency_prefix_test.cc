// Prefixes that are matched on a device, as on the host, whatever fails on the way.
#include <random>
#include <string>
#include <vector>

#include "tests/engine/device/residency_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

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
    for (uint64_t i = 0; i < addresses_.size(); i += smaller_under_sanitizers(1, 4)) {
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
  const bool chosen = random() % 2;  // under the sanitizers: which of the two
  for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
    if (under_sanitizer && (code == StatusCode::io_error) != chosen) continue;
    uint64_t calls_of_all = 0;
    for (uint64_t n = 0; n <= calls_of_all; n += 1 + n / smaller_under_sanitizers(8, 2)) {
      INFO("call " + std::to_string(n));
      TemporaryDirectory directory;
      auto db = open(directory.file("db"));
      auto opened = Database::open(directory.file("host"), on_host);
      REQUIRE_OK(opened);
      Database* host = opened->get();
      Table table = *db->create_table("t", {.address_bits = 32});
      Table there = *host->create_table("t", {.address_bits = 32});
      change_prefixes(random, smaller_under_sanitizers(20'000, 3000), *db, table, *host, there);
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

// Addresses in the memory of the device, and prefixes that they often have.
class AddressesOnTheDevice {
 public:
  static constexpr uint64_t size = 3000;

  AddressesOnTheDevice(Backend& device, uint32_t bits, std::mt19937_64& random)
      : device_(device),
        bits_(bits),
        bytes_(bits == byte_strings ? 5 : address_bytes(bits)),
        random_(random) {
    for (uint64_t i = 0; i < size; ++i) all_ += address();
    there_ = allocate(all_.size());
    room_ = allocate(size * sizeof(Location));
    CHECK_OK(device_.copy(there_->data(), all_.data(), all_.size()));
  }
  KeyColumn column() const { return KeyColumn::fixed(there_->data(), bytes_, size); }
  Location* out() { return reinterpret_cast<Location*>(room_->data()); }

  // What a match left in out() is what one on the host finds.
  void expect_found(const Snapshot& snapshot, const Table& table) {
    std::vector<Location> locations(size);
    REQUIRE_OK(device_.copy(locations.data(), out(), size * sizeof(Location)));
    MatchResult expected;
    REQUIRE_OK(snapshot.match(table, KeyColumn::fixed(all_.data(), bytes_, size), &expected));
    for (uint64_t i = 0; i < size; ++i) {
      REQUIRE_MESSAGE(locations[i].found() == expected.found[i], i);
      if (!expected.found[i]) continue;
      CHECK_MESSAGE(locations[i].index == expected.locations[i].index, i);
      CHECK_MESSAGE(locations[i].rank == expected.locations[i].rank, i);
    }
  }
  // The rows of what a match left in out() are those that one on the host refers to, with keys
  // that have the width of all prefixes, and values that have one byte.
  void expect_rows(const Snapshot& snapshot, const Table& table, bool values_are_there) {
    const uint32_t width = prefix_key_width(bits_);
    auto keys = allocate(size * width), values = allocate(size), there = allocate(size);
    GatheredRows rows{.keys = keys->data(),
                      .key_width = width,
                      .values = values->data(),
                      .value_width = 1,
                      .there = reinterpret_cast<uint8_t*>(there->data())};
    Status s = snapshot.rows_device(table, out(), size, rows, nullptr);
    const bool none = *snapshot.count(table) == 0;
    CHECK(s.code() == (values_are_there || none ? StatusCode::ok : StatusCode::unavailable));
    // Keys are there where the table is.
    rows.value_width = values_are_there ? 1 : 0;
    REQUIRE_OK(snapshot.rows_device(table, out(), size, rows, nullptr));
    std::string found_keys(size * width, '?'), found_values(size, '?'), found(size, '?');
    REQUIRE_OK(device_.copy(found_keys.data(), keys->data(), found_keys.size()));
    REQUIRE_OK(device_.copy(found_values.data(), values->data(), size));
    REQUIRE_OK(device_.copy(found.data(), there->data(), size));
    MatchResult expected;
    REQUIRE_OK(snapshot.match(table, KeyColumn::fixed(all_.data(), bytes_, size), &expected));
    for (uint64_t i = 0; i < size; ++i) {
      INFO(i);
      REQUIRE(found[i] == (expected.found[i] ? 1 : 0));
      const std::string key(as_text(expected.prefix(i))), value(as_text(expected.value(i)));
      REQUIRE(found_keys.substr(i * width, width) == (key.empty() ? std::string(width, 0) : key));
      if (!values_are_there) continue;
      REQUIRE(found_values.substr(i, 1) == (value.size() == 1 ? value : std::string(1, 0)));
    }
    GatheredRows on_host = rows;
    static std::byte here[1];
    on_host.keys = here;
    on_host.value_width = 0;
    CHECK(snapshot.rows_device(table, out(), size, on_host, nullptr).code() ==
          StatusCode::invalid_argument);
  }
  std::string prefix() {
    std::string key = address();
    auto length = static_cast<uint32_t>(random_() % (bits_ == byte_strings ? 40 : 25));
    if (bits_ == byte_strings) {
      key.resize(length / 8);
      return key;
    }
    clear_host_bits(reinterpret_cast<std::byte*>(key.data()), bytes_, length);
    return key + static_cast<char>(length);
  }

 private:
  // Few first bytes, so that many addresses have prefixes.
  std::string address() {
    std::string a;
    for (uint32_t i = 0; i < bytes_; ++i) a += static_cast<char>(random_() % (i < 2 ? 3 : 256));
    return a;
  }
  std::unique_ptr<BackendMemory> allocate(uint64_t bytes) {
    auto memory = device_.allocate(bytes);
    CHECK_OK(memory);
    return std::move(*memory);
  }

  Backend& device_;
  uint32_t bits_, bytes_;
  std::mt19937_64& random_;
  std::string all_;
  std::unique_ptr<BackendMemory> there_, room_;
};

TEST_CASE_METHOD(ResidencyTest, "ResidencyTest.PrefixesOfAddressesOnTheDevice", "[ResidencyTest]") {
  std::mt19937_64 random(seed());
  for (uint32_t bits : {32u, 128u, byte_strings}) {
    INFO(bits);
    TemporaryDirectory directory;
    auto db = open(directory.file("db"));
    Table table = *db->create_table("t", {.address_bits = bits});
    AddressesOnTheDevice addresses(*device_, bits, random);
    // An empty table, one segment, changes over it, and a new base of several segments.
    for (int round = 0; round < 5; ++round) {
      Snapshot snapshot = db->snapshot();
      Status s = snapshot.match_device(table, addresses.column(), addresses.out(), nullptr);
      if (bits == byte_strings || setting_.memory != all_memory) {
        CHECK_MESSAGE(!(s.ok() && bits == byte_strings), s.to_string());
      } else {
        REQUIRE_OK(s);
      }
      if (s.ok()) addresses.expect_found(snapshot, table);
      if (s.ok() && setting_.memory == all_memory)
        addresses.expect_rows(snapshot, table, setting_.values == ValuePlacement::device);
      WriteTransaction t = db->begin();
      for (int i = 0; i < (round == 0 ? 400 : 60); ++i) {
        std::string key = addresses.prefix();
        const std::string value(random() % 8 ? 1 : 2, static_cast<char>('a' + random() % 26));
        REQUIRE_OK(random() % 3 ? t.put(table, key, value) : t.erase(table, key));
      }
      REQUIRE_OK(t.commit());
      if (round == 3) REQUIRE_OK(db->compact());
    }
    static Location here[AddressesOnTheDevice::size];
    CHECK(db->snapshot().match_device(table, addresses.column(), here, nullptr).code() ==
          StatusCode::invalid_argument);
    KeyColumn narrow = KeyColumn::fixed(addresses.column().data, 3, 5);
    CHECK(!db->snapshot().match_device(table, narrow, addresses.out(), nullptr).ok());
  }
}

}  // namespace
}  // namespace stride::test
