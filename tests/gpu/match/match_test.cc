
#include <map>
#include <set>

#include "gpu/backend.h"
#include "gpu/match/match_build_host.h"
#include "gpu/match/match_layout.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// An address as a string of '0' and '1', so that the reference shares nothing with what it tests.
std::string bits_of(const std::string& bytes, size_t bits) {
  std::string s;
  for (size_t i = 0; i < bits; ++i) {
    s += static_cast<char>('0' + (static_cast<uint8_t>(bytes[i / 8]) >> (7 - i % 8) & 1));
  }
  return s;
}
std::string bytes_of(const std::string& bits, uint32_t address_bits) {
  std::string s((address_bits + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == '1') s[i / 8] = static_cast<char>(s[i / 8] | 0x80 >> i % 8);
  }
  return s;
}

// Prefixes of one table, and addresses to look for.
class Case {
 public:
  explicit Case(uint32_t address_bits) : address_bits_(address_bits) {}

  // bits: '0' and '1', or, for byte strings, bytes.
  void add(const std::string& bits) {
    if (address_bits_ == byte_strings) {
      keys_.insert(bits);
      return;
    }
    keys_.insert(key_of(bits));
  }
  void look_for(const std::string& address) { addresses_.push_back(address); }

  // Addresses at the edges of prefixes, inside them and anywhere.
  void look_around(Random& random) {
    if (address_bits_ == byte_strings) {
      for (const std::string& key : keys_) {
        look_for(key);
        look_for(key + random_bytes(random, random() % 4, 3));
        if (!key.empty()) look_for(key.substr(0, key.size() - 1));
        look_for(key + '\xFF');
        look_for(key + '\0');
      }
      look_for("");
      look_for(std::string(300, '\xFF'));
      return;
    }
    for (const std::string& key : keys_) {
      uint32_t length = prefix_length(as_bytes(key), address_bits_);
      std::string prefix = bits_of(key, length);
      std::string low = prefix + std::string(address_bits_ - length, '0');
      std::string high = prefix + std::string(address_bits_ - length, '1');
      std::string inside = prefix;
      while (inside.size() < address_bits_) inside += static_cast<char>('0' + random() % 2);
      for (const std::string& bits : {low, high, inside}) look_for(bytes_of(bits, address_bits_));
      // One before and one behind.
      size_t i = address_bits_;
      while (i > 0 && low[i - 1] == '0') low[--i] = '1';
      if (i > 0) low[i - 1] = '0';
      look_for(bytes_of(low, address_bits_));
      i = address_bits_;
      while (i > 0 && high[i - 1] == '1') high[--i] = '0';
      if (i > 0) high[i - 1] = '1';
      look_for(bytes_of(high, address_bits_));
    }
    for (int i = 0; i < 300; ++i) {
      std::string address = random_bytes(random, (address_bits_ + 7) / 8);
      look_for(bytes_of(bits_of(address, address_bits_), address_bits_));
    }
  }

  uint32_t longest(const std::string& address) const {
    return longest(address, address_bits_ == byte_strings ? address.size() + 1 : address_bits_ + 1);
  }
  uint32_t parent(const std::string& key) const {
    if (address_bits_ == byte_strings) return longest(key, key.size());
    return longest(key, prefix_length(as_bytes(key), address_bits_));
  }
  // Takes those shorter than `below`, in bits or of byte strings in bytes.
  uint32_t longest(const std::string& address, size_t below) const {
    if (below == 0) return Location::absent;
    const bool are_bytes = address_bits_ == byte_strings;
    const std::string all = are_bytes ? address : bits_of(address, below - 1);
    for (auto length = lengths_.lower_bound(below); length != lengths_.begin();) {
      const std::string first = all.substr(0, *--length);
      if (auto at = ranks_.find(are_bytes ? first : key_of(first)); at != ranks_.end())
        return at->second;
    }
    return Location::absent;
  }

  // Builds with all backends, whose images must be the same.
  void expect_right(std::span<const std::shared_ptr<Backend>> backends) {
    Keys keys(keys_.begin(), keys_.end());
    for (uint32_t rank = 0; rank < keys.size(); ++rank) {
      ranks_[keys[rank]] = rank;
      lengths_.insert(address_bits_ == byte_strings
                          ? keys[rank].size()
                          : prefix_length(as_bytes(keys[rank]), address_bits_));
    }
    OwnedIndex packed(keys, address_bits_ != byte_strings);
    OwnedColumn addresses(addresses_, address_bits_ != byte_strings);
    std::vector<uint32_t> expected;
    for (const std::string& address : addresses_) expected.push_back(longest(address));
    std::vector<std::byte> first;
    for (const auto& backend : backends) {
      INFO(backend->name());
      std::vector<std::byte> image{std::byte{7}};  // what is there already goes
      std::vector<uint32_t> parents{1, 2, 3};
      Status s =
          backend->longest_prefix().build_matches(packed.column(), address_bits_, &image, &parents);
      REQUIRE_OK(s);
      if (first.empty()) first = image;
      REQUIRE(image == first);
      REQUIRE(parents.size() == keys.size());
      for (size_t i = 0; i < keys.size(); ++i) REQUIRE_MESSAGE(parents[i] == parent(keys[i]), i);
      std::vector<uint32_t> out(addresses_.size(), 77);
      s = backend->longest_prefix().longest_match({image.data(), image.size()}, addresses.column(),
                                                  out);
      REQUIRE_OK(s);
      expect_answers(out, expected);
      expect_resident_right(*backend, image, addresses.column(), expected);
    }
    if (address_bits_ > max_tree_address_bits) return;
    // The passes of a device, on the host.
    for (unsigned threads : {1u, 3u}) {
      if (under_thread_sanitizer && threads == 1) continue;
      TaskPool pool(threads);
      std::vector<std::byte> image{std::byte{7}};
      std::vector<uint32_t> parents;
      build_matches_parallel(pool, packed.column(), address_bits_, &image, &parents);
      REQUIRE(image == first);
      REQUIRE(parents.size() == keys.size());
      for (size_t i = 0; i < keys.size(); ++i) REQUIRE_MESSAGE(parents[i] == parent(keys[i]), i);
    }
  }

  void expect_answers(const std::vector<uint32_t>& out, const std::vector<uint32_t>& expected) {
    REQUIRE(out.size() == expected.size());
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] == expected[i]) continue;  // an assertion takes longer than a search
      REQUIRE_MESSAGE(out[i] == expected[i], "address " << i << " of " << out.size() << ", "
                                                        << ranks_.size() << " prefixes of "
                                                        << address_bits_ << " bits");
    }
  }

  // Searches a copy on the device, with addresses and results on either side.
  void expect_resident_right(Backend& backend, const std::vector<std::byte>& image,
                             const KeyColumn& addresses, const std::vector<uint32_t>& expected) {
    MatchView view{image.data(), image.size()};
    auto resident = backend.longest_prefix().make_resident(view);
    if (!backend.has_device() || address_bits_ > max_tree_address_bits) {
      CHECK(resident.status().code() == StatusCode::unavailable);
      return;
    }
    REQUIRE_OK(resident);
    CHECK((*resident)->memory_bytes() >= image.size());
    view.resident = resident->get();
    std::vector<uint32_t> out(expected.size(), 77);
    Status s = backend.longest_prefix().longest_match(view, addresses, out);
    REQUIRE_OK(s);
    expect_answers(out, expected);

    std::vector<uint64_t> ends;
    for (uint64_t i = 0; i <= addresses.size; ++i) ends.push_back(addresses.begin(i));
    std::fill(out.begin(), out.end(), 77);
    s = backend.longest_prefix().longest_match(
        view, Column::variable(addresses.data, ends.data(), addresses.size), out);
    REQUIRE_OK(s);
    expect_answers(out, expected);

    // One byte further, too: what is not aligned.
    for (uint64_t skew : {0, 1}) {
      auto there = backend.allocate(addresses.bytes() + skew);
      auto results = backend.allocate(expected.size() * sizeof(uint32_t));
      REQUIRE((there.ok() && results.ok()));
      std::byte* data = (*there)->data() + skew;
      REQUIRE_OK(backend.copy(data, addresses.data, addresses.bytes()));
      std::span<uint32_t> room(reinterpret_cast<uint32_t*>((*results)->data()), expected.size());
      s = backend.longest_prefix().longest_match(
          view, Column::fixed(data, addresses.width, addresses.size), room);
      REQUIRE_OK(s);
      REQUIRE_OK(backend.copy(out.data(), room.data(), room.size_bytes()));
      expect_answers(out, expected);
    }
  }

  size_t size() const { return keys_.size(); }

 private:
  std::string key_of(const std::string& bits) const {
    std::string key = bytes_of(bits, address_bits_);
    if (address_bits_ > 255) key += static_cast<char>(bits.size() >> 8);
    key += static_cast<char>(bits.size());
    return key;
  }

  uint32_t address_bits_;
  std::set<std::string> keys_;
  std::set<size_t> lengths_;  // of the prefixes
  std::map<std::string, uint32_t> ranks_;
  Keys addresses_;
};

class MatchTest {
 protected:
  MatchTest() {
    if (!under_thread_sanitizer) backends_.push_back(Backend::host(1));
    backends_.push_back(Backend::host(3));
    auto device = Backend::cuda({.host_threads = 2});
    if (device.ok()) backends_.push_back(std::move(*device));
  }
  void check(Case& c) {
    c.look_around(random_);
    c.expect_right(backends_);
  }

  Random random_{seed()};
  std::vector<std::shared_ptr<Backend>> backends_;
};

constexpr uint32_t widths[] = {1,  2,  5,  7,  8,   12,  16,  24,  31,  32, 33,
                               48, 63, 64, 65, 100, 127, 128, 129, 200, 300};

TEST_CASE_METHOD(MatchTest, "MatchTest.RandomNestedTables", "[MatchTest]") {
  for (uint32_t bits : widths) {
    for (size_t n : {1, 2, 10, smaller_under_tsan(150, 16)}) {
      Case c(bits);
      std::string last;
      for (size_t i = 0; i < n; ++i) {
        // Each goes on from a part of the one before, so that prefixes nest and share.
        std::string prefix = last.substr(0, random_() % (last.size() + 1));
        size_t length = random_() % (bits + 1);
        while (prefix.size() < length) prefix += static_cast<char>('0' + random_() % 2);
        c.add(prefix);
        last = prefix;
      }
      check(c);
    }
  }
}

TEST_CASE_METHOD(MatchTest, "MatchTest.ManyPrefixes", "[MatchTest]") {
  for (uint32_t bits : {32u, 128u}) {
    Case c(bits);
    for (int i = 0; i < smaller_under_tsan(2000, 250); ++i) {
      // Clustered as routes are: few first bits, most lengths even.
      std::string prefix = bits_of(big_endian(random_() % 40 << 18 | random_() % (1 << 18), 3), 24);
      size_t length = 16 + random_() % (bits == 32 ? 17 : 49);
      while (prefix.size() < length) prefix += static_cast<char>('0' + random_() % 2);
      c.add(prefix.substr(0, length));
    }
    check(c);
  }
}

// As many as make backends use all they have.
TEST_CASE_METHOD(MatchTest, "MatchTest.LargeTables", "[MatchTest]") {
  for (uint32_t bits : {32u, 64u, 128u}) {
    uint32_t bytes = bits / 8;
    std::set<std::string> set;
    std::string last(bytes, '\0');
    while (set.size() < 70'000) {
      std::string key = random_() % 4 ? last : random_bytes(random_, bytes);
      uint32_t length = bits / 4 + random_() % (random_() % 8 ? bits / 4 + 1 : 3 * bits / 4 + 1);
      // What is left of the last one, so that prefixes nest and are neighbours.
      for (uint32_t i = static_cast<uint32_t>(random_()) % bytes; i < bytes; ++i)
        key[i] = static_cast<char>(random_());
      last = key;
      clear_host_bits(reinterpret_cast<std::byte*>(key.data()), bytes, length);
      set.insert(key + static_cast<char>(length));
    }
    Keys keys(set.begin(), set.end()), looked_for;
    OwnedIndex packed(keys, true);
    for (int i = 0; i < 20'000; ++i) {
      std::string address = keys[random_() % keys.size()].substr(0, bytes);
      for (size_t at = random_() % (bytes + 1); at < bytes; ++at)
        address[at] = static_cast<char>(random_());
      looked_for.push_back(address);
    }
    OwnedColumn addresses(looked_for, true);
    std::vector<std::byte> expected;
    std::vector<uint32_t> expected_parents, answers(looked_for.size());
    Backend& one = *backends_.front();  // checked by the other tests
    REQUIRE_OK(
        one.longest_prefix().build_matches(packed.column(), bits, &expected, &expected_parents));
    MatchView view{expected.data(), expected.size()};
    REQUIRE_OK(one.longest_prefix().longest_match(view, addresses.column(), answers));
    TaskPool pool(3);
    std::vector<std::byte> image;
    std::vector<uint32_t> parents, out(answers.size());
    build_matches_parallel(pool, packed.column(), bits, &image, &parents);
    CHECK(image == expected);
    CHECK(parents == expected_parents);
    for (const auto& backend : backends_) {
      INFO(backend->name());
      REQUIRE_OK(backend->longest_prefix().build_matches(packed.column(), bits, &image, &parents));
      CHECK(image == expected);
      CHECK(parents == expected_parents);
      auto resident = backend->longest_prefix().make_resident(view);
      view.resident = resident.ok() ? resident->get() : nullptr;
      CHECK(resident.ok() == backend->has_device());
      REQUIRE_OK(backend->longest_prefix().longest_match(view, addresses.column(), out));
      CHECK(out == answers);
      // Memory that a device reads and writes itself.
      const KeyColumn column = addresses.column();
      auto from = backend->allocate_host(column.bytes());
      auto to = backend->allocate_host(out.size() * sizeof(uint32_t));
      REQUIRE_OK(from);
      REQUIRE_OK(to);
      std::memcpy((*from)->data(), column.data, column.bytes());
      const std::span<uint32_t> pinned(reinterpret_cast<uint32_t*>((*to)->data()), out.size());
      REQUIRE_OK(backend->longest_prefix().longest_match(
          view, Column::fixed((*from)->data(), column.width, column.size), pinned));
      CHECK(std::equal(pinned.begin(), pinned.end(), answers.begin()));
    }
  }
}

// Ranks that 3 bytes cannot hold.
TEST_CASE_METHOD(MatchTest, "MatchTest.MoreThanEightMillion", "[MatchTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("much memory and time, and nothing that threads share");
#endif
  constexpr uint32_t n = end_of_narrow_entries + 1000, step = 300;
  std::vector<std::byte> keys(n * uint64_t{5});
  auto address = [](uint32_t i) { return i * step; };
  for (uint32_t i = 0; i < n; ++i) {
    std::byte* key = keys.data() + i * uint64_t{5};
    for (uint32_t k = 0; k < 4; ++k) key[k] = static_cast<std::byte>(address(i) >> (24 - 8 * k));
    key[4] = static_cast<std::byte>(30 + i % 3);
  }
  PackedColumn column;
  column.data = keys.data();
  column.data_bytes = keys.size();
  column.size = n;
  column.width = 5;
  Keys looked_for;
  std::vector<uint32_t> expected;
  for (int k = 0; k < 2000; ++k) {
    auto i = static_cast<uint32_t>(k < 1000 ? n - 1 - k : random_() % n);
    uint32_t inside = i % 3 == 0 ? 4 : i % 3 == 1 ? 2 : 1, past = random_() % 6;
    looked_for.push_back(big_endian(address(i) + past, 4));
    expected.push_back(past < inside ? i : Location::absent);
  }
  OwnedColumn addresses(looked_for, true);
  std::vector<std::byte> first, image;
  std::vector<uint32_t> out(expected.size());
  for (const auto& backend : backends_) {
    if (backend == backends_[1]) continue;  // as the first
    Status s = backend->longest_prefix().build_matches(column, 32, &image);
    REQUIRE_OK(s);
    if (first.empty()) first = image;
    REQUIRE(image == first);
    MatchView view{image.data(), image.size()};
    auto resident = backend->longest_prefix().make_resident(view);
    for (bool on_device : {false, true}) {
      if (on_device && !resident.ok()) continue;
      view.resident = on_device ? resident->get() : nullptr;
      REQUIRE_OK(backend->longest_prefix().longest_match(view, addresses.column(), out));
      REQUIRE(out == expected);
    }
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // it would take long
  TaskPool pool(3);
  build_matches_parallel(pool, column, 32, &image, nullptr);
  CHECK(image == first);
#endif
}

TEST_CASE_METHOD(MatchTest, "MatchTest.DeepNesting", "[MatchTest]") {
  for (uint32_t bits : {32u, smaller_under_tsan(128u, 96u), smaller_under_tsan(256u, 136u)}) {
    for (char way : {'0', '1', '?'}) {
      Case c(bits);
      std::string prefix;
      c.add(prefix);
      for (uint32_t i = 0; i < bits; ++i) {
        prefix += way == '?' ? static_cast<char>('0' + random_() % 2) : way;
        c.add(prefix);
      }
      check(c);
    }
  }
}

TEST_CASE_METHOD(MatchTest, "MatchTest.EveryAddressCoveredTwice", "[MatchTest]") {
  for (uint32_t bits : {8u, 12u}) {
    Case c(bits);
    c.add("");
    for (uint32_t i = 0; i < 1u << bits; ++i) {
      c.add(bits_of(big_endian(i << (32 - bits), 4), bits));
      c.add(bits_of(big_endian(i << (32 - bits), 4), bits - 1));
    }
    check(c);
  }
}

TEST_CASE_METHOD(MatchTest, "MatchTest.FewPrefixes", "[MatchTest]") {
  for (uint32_t bits : widths) {
    Case none(bits);
    check(none);
    Case everything(bits);
    everything.add("");
    check(everything);
    for (char edge : {'0', '1'}) {
      Case one(bits);
      one.add(std::string(bits, edge));
      check(one);
      Case first(bits);
      first.add(std::string(1, edge));
      check(first);
      first.add("");
      check(first);
    }
  }
}

TEST_CASE_METHOD(MatchTest, "MatchTest.ByteStrings", "[MatchTest]") {
  for (unsigned alphabet : {1u, 2u, 256u}) {
    for (size_t n : {0, 1, 30, 2000}) {
      Case c(byte_strings);
      for (size_t i = 0; i < n; ++i) {
        std::string key = random_bytes(random_, random_() % (alphabet == 1 ? 300 : 9), alphabet);
        if (random_() % 2) {
          for (char& byte : key) byte = byte ? '\xFF' : '\0';
        }
        c.add(key);
      }
      check(c);
    }
  }
  Case longest(byte_strings);
  longest.add(std::string(max_key_bytes, '\xFF'));
  longest.add(std::string(max_key_bytes, '\0'));
  longest.add(std::string(max_key_bytes - 1, '\0'));
  check(longest);
}

TEST_CASE_METHOD(MatchTest, "MatchTest.SaysWhatIsWrong", "[MatchTest]") {
  for (const auto& backend : backends_) {
    std::vector<std::byte> image;
    auto build = [&](const Keys& keys, uint32_t bits) {
      return backend->longest_prefix().build_matches(OwnedIndex(keys, true).column(), bits, &image);
    };
    CHECK(build({}, 0).code() == StatusCode::invalid_argument);
    CHECK(build({}, 65536).code() == StatusCode::invalid_argument);
    using std::string_literals::operator""s;
    Status s = build({"\x0A\0\0\0\x08"s, "\x0A\0\0\1\x08"s}, 32);  // bits behind the length
    CHECK(s.code() == StatusCode::invalid_argument);
    CHECK_MESSAGE(s.to_string().find("row 1") != std::string::npos, s.to_string());
    CHECK_FALSE(build({"\x0A\0\0\0\x21"s}, 32).ok());                     // longer than an address
    CHECK_FALSE(build({"\x0A\0\0\x08"s}, 32).ok());                       // too short for a key
    CHECK_FALSE(build({"\x0B\0\0\0\x08"s, "\x0A\0\0\0\x08"s}, 32).ok());  // descending
    CHECK_FALSE(build({"\x0A\0\0\0\x08"s, "\x0A\0\0\0\x08"s}, 32).ok());  // twice
    REQUIRE_OK(build({"\x0A\0\0\0\x08"s}, 32));
    uint32_t out[2];
    MatchView view{image.data(), image.size()};
    CHECK(backend->longest_prefix()
              .longest_match(view, Column::fixed("12345678", 8, 1), {out, 1})
              .code() == StatusCode::invalid_argument);
    uint64_t offsets[] = {0, 4, 7};
    s = backend->longest_prefix().longest_match(view, Column::variable("\x0A\0\0\0123", offsets, 2),
                                                out);
    CHECK(s.code() == StatusCode::invalid_argument);
    CHECK_MESSAGE(s.to_string().find("address 1") != std::string::npos, s.to_string());
    offsets[2] = 8;
    CHECK_OK(backend->longest_prefix().longest_match(
        view, Column::variable("\x0A\0\0\0\x0B\0\0\0", offsets, 2), out));
    CHECK(out[0] == 0u);
    CHECK(out[1] == Location::absent);
  }
}

}  // namespace
}  // namespace stride::test
