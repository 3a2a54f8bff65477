// Prefix tables beside a map that is asked for one length after the other.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/prefixes.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {

// The first `length` bits of an address of whole bytes, as a string of as many; bit by bit, so that
// it shares nothing with what is tested.
inline std::string first_bits(const std::string& address, uint32_t length) {
  std::string bits(address.size(), '\0');
  for (uint32_t i = 0; i < length; ++i)
    bits[i / 8] = static_cast<char>(bits[i / 8] | (address[i / 8] & 0x80 >> i % 8));
  return bits;
}

// Prefixes of addresses of so many bits, and their values.
class PrefixModel {
 public:
  explicit PrefixModel(uint32_t address_bits) : address_bits_(address_bits) {}

  uint32_t step() const { return address_bits_ == byte_strings ? 8 : 1; }
  uint32_t longest(const std::string& address) const {
    return address_bits_ == byte_strings ? static_cast<uint32_t>(8 * address.size())
                                         : address_bits_;
  }
  std::string key(const std::string& address, uint32_t length) const {
    if (address_bits_ == byte_strings) return address.substr(0, length / 8);
    std::string key = first_bits(address, length);
    if (address_bits_ > 255) key += static_cast<char>(length >> 8);
    return key + static_cast<char>(length);
  }
  std::string address_of(const std::string& key) const {
    if (address_bits_ == byte_strings) return key;
    return key.substr(0, key.size() - (address_bits_ > 255 ? 2 : 1));
  }
  uint32_t length_of(const std::string& key) const {
    if (address_bits_ == byte_strings) return static_cast<uint32_t>(8 * key.size());
    uint32_t low = static_cast<unsigned char>(key.back());
    return address_bits_ < 256 ? low : static_cast<unsigned char>(key[key.size() - 2]) << 8 | low;
  }

  Model& entries() { return entries_; }
  const Model& entries() const { return entries_; }

  // The entries that cover an address, the shortest first.
  std::vector<Model::const_iterator> all_of(const std::string& address) const {
    std::vector<Model::const_iterator> found;
    for (uint32_t length = 0; length <= longest(address); length += step())
      if (auto it = entries_.find(key(address, length)); it != entries_.end()) found.push_back(it);
    return found;
  }
  // A prefix and those inside it.
  Model inside(const std::string& prefix) const {
    Model found;
    uint32_t length = length_of(prefix);
    for (const auto& [k, value] : entries_)
      if (length_of(k) >= length && key(address_of(k), length) == prefix) found[k] = value;
    return found;
  }

 private:
  uint32_t address_bits_;
  Model entries_;
};

inline void expect_match(const Snapshot& snapshot, const Table& table, const PrefixModel& model,
                         const std::vector<std::string>& addresses) {
  Rows rows(addresses);
  MatchResult result;
  REQUIRE_OK(snapshot.match(table, rows.column(), &result));
  REQUIRE(result.found.size() == addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    auto expected = model.all_of(addresses[i]);
    REQUIRE_MESSAGE(result.found[i] == !expected.empty(), "address " << i);
    REQUIRE(result.locations[i].found() == !expected.empty());
    std::string key = expected.empty() ? "" : expected.back()->first;
    REQUIRE_MESSAGE(result.lengths[i] == (expected.empty() ? 0 : model.length_of(key)),
                    "address " << i);
    REQUIRE_MESSAGE(text(result.prefix(i)) == key, "address " << i);
    REQUIRE(text(result.value(i)) == (expected.empty() ? "" : expected.back()->second));
  }
}

inline void expect_match_of_one(const Snapshot& snapshot, const Table& table,
                                const PrefixModel& model, const std::string& address) {
  auto expected = model.all_of(address);
  auto one = snapshot.match(table, as_bytes(address));
  REQUIRE_OK(one);
  REQUIRE(one->has_value() == !expected.empty());
  auto all = snapshot.match_all(table, as_bytes(address));
  REQUIRE_OK(all);
  REQUIRE(all->size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const PrefixEntry& entry = (*all)[i];
    REQUIRE(text(entry.key) == expected[i]->first);
    REQUIRE(entry.length == model.length_of(expected[i]->first));
    REQUIRE(text(entry.value) == expected[i]->second);
  }
  if (expected.empty()) return;
  REQUIRE(text((*one)->key) == expected.back()->first);
  REQUIRE((*one)->length == model.length_of(expected.back()->first));
  REQUIRE(text((*one)->value) == expected.back()->second);
}

inline void expect_inside(const Snapshot& snapshot, const Table& table, const PrefixModel& model,
                          const std::string& prefix) {
  auto scan = snapshot.inside(table, as_bytes(prefix));
  REQUIRE_OK(scan);
  Model found;
  ScanBatch batch;
  while (scan->next(&batch))
    for (uint64_t i = 0; i < batch.keys.size; ++i)
      found[text(batch.keys[i])] = text(batch.values[i]);
  REQUIRE_OK(scan->status());
  REQUIRE(found == model.inside(prefix));
}

inline void expect_gets(const Snapshot& snapshot, const Table& table, const PrefixModel& model,
                        const std::vector<std::string>& keys) {
  Rows addresses;
  std::vector<uint16_t> lengths;
  for (const std::string& key : keys) {
    addresses.add(model.address_of(key));
    lengths.push_back(static_cast<uint16_t>(model.length_of(key)));
  }
  PrefixKeys made;
  const uint16_t* given = table.address_bits() == byte_strings ? nullptr : lengths.data();
  REQUIRE_OK(
      make_prefix_keys({addresses.column(), given}, table.address_bits(), HostBits::refuse, &made));
  GetResult got;
  REQUIRE_OK(snapshot.get(table, made.keys(), &got));
  for (size_t i = 0; i < keys.size(); ++i) {
    REQUIRE(text(made.keys()[i]) == keys[i]);
    auto expected = model.entries().find(keys[i]);
    REQUIRE(got.found[i] == (expected != model.entries().end()));
    if (got.found[i]) REQUIRE(text(got.values[i]) == expected->second);
  }
}

// Addresses and prefixes that often meet: of a few addresses, their neighbours, and both ends.
class RandomPrefixes {
 public:
  RandomPrefixes(uint32_t address_bits, std::mt19937_64& random)
      : address_bits_(address_bits), random_(random) {
    for (int i = 0; i < 6; ++i) pool_.push_back(any());
  }

  std::string address() {
    if (random_() % 8 == 0) return any();
    std::string address = pool_[random_() % pool_.size()];
    if (address_bits_ == byte_strings) {
      address.resize(random_() % (address.size() + 1));
      if (random_() % 2) address += alphabet();
    } else if (random_() % 4) {
      uint64_t bit = random_() % address_bits_;
      address[bit / 8] = static_cast<char>(address[bit / 8] ^ 0x80 >> bit % 8);
    }
    return address;
  }
  std::string key(const PrefixModel& model) {
    std::string of = address();
    return model.key(of, random_() % (model.longest(of) / model.step() + 1) * model.step());
  }

 private:
  char alphabet() {
    return "\0\xFF"
           "ab"[random_() % 4];
  }
  std::string any() {
    uint64_t ends = random_() % 8;
    if (address_bits_ == byte_strings) {
      std::string s(random_() % 12, ends == 0 ? '\0' : '\xFF');
      for (char& c : s) c = ends < 2 ? c : alphabet();
      return s;
    }
    std::string s(address_bytes(address_bits_), ends == 0 ? '\0' : '\xFF');
    for (char& c : s) c = ends < 2 ? c : static_cast<char>(random_());
    return first_bits(s, address_bits_);
  }

  uint32_t address_bits_;
  std::mt19937_64& random_;
  std::vector<std::string> pool_;
};

}  // namespace stride::test
