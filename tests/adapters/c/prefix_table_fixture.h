// A table of routes behind the C interface, and every way to match in it.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/prefix_fixture.h"

namespace stride::test {

class CPrefixTest : public CTest {
 protected:
  CPrefixTest() {
    REQUIRE_C_OK(stride_values_create(&values_));
    REQUIRE_C_OK(stride_references_create(&references_));
    routes_ = create("routes", 32);
  }
  ~CPrefixTest() {
    CHECK_C_OK(stride_table_release(routes_));
    CHECK_C_OK(stride_values_release(values_));
    CHECK_C_OK(stride_references_release(references_));
  }

  stride_table* create(const char* name, uint32_t address_bits) {
    stride_table* table = nullptr;
    stride_table_options o{sizeof o, 0, address_bits};
    CHECK_C_OK(stride_table_create_with(db_, name, &o, &table));
    return table;
  }
  void put_routes(const std::vector<std::pair<const char*, std::string>>& routes) {
    Strings keys, values;
    for (const auto& [prefix, hop] : routes) {
      keys.push_back(prefix_key(prefix, 32));
      values.push_back(hop);
    }
    put(routes_, keys, values);
  }
  static Strings addresses_of(const std::vector<const char*>& texts) {
    Strings addresses;
    for (const char* text : texts) addresses.push_back(address_of(text, 32));
    return addresses;
  }

  struct Match {
    std::string key, value;
    uint32_t length;
    bool operator==(const Match&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Match& m) {
      return out << Catch::Detail::stringify(m.key) << "/" << m.length << ": " << m.value;
    }
  };
  using Matches = std::vector<std::optional<Match>>;
  static Match route(const char* prefix, const std::string& value) {
    std::string key = prefix_key(prefix, 32);
    return {key, value, static_cast<unsigned char>(key.back())};
  }
  static Match match_of(const stride_bytes& key, const stride_bytes& value, uint32_t length) {
    return {{static_cast<const char*>(key.data), key.size},
            {static_cast<const char*>(value.data), value.size},
            length};
  }

  // Every way of matching gives this. `expected` are those of snapshot_.
  void expect_matches(stride_table* table, const Strings& addresses, const Matches& expected) {
    CRows rows(addresses);
    stride_column column = rows.column();
    expect_copies(table, column, expected);
    expect_references(table, column, expected);
    uint64_t bytes = 0;
    for (const auto& match : expected) bytes += match ? match->value.size() : 0;
    for (stride_values* workspace : {values_, static_cast<stride_values*>(nullptr)}) {
      expect_into(table, column, expected, workspace, bytes, STRIDE_OK);
      if (bytes) expect_into(table, column, expected, workspace, bytes - 1, STRIDE_TOO_SMALL);
    }
    for (size_t i = 0; i < addresses.size(); ++i) {
      stride_bytes value, key;
      uint32_t length = 99;
      REQUIRE_C_OK(stride_match_one(snapshot_, table, addresses[i].data(), addresses[i].size(),
                                    &value, &key, &length));
      REQUIRE_MESSAGE((value.data != nullptr) == expected[i].has_value(), i);
      REQUIRE_MESSAGE((key.data != nullptr) == expected[i].has_value(), i);
      if (expected[i]) {
        REQUIRE_MESSAGE(match_of(key, value, length) == *expected[i], i);
      } else {
        REQUIRE_MESSAGE(value.size + key.size + length == 0u, i);
      }
    }
  }
  void expect_rows(const stride_column& column, const uint64_t* validity, const uint32_t* lengths,
                   const Matches& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      REQUIRE_MESSAGE(bit(validity, i) == expected[i].has_value(), i);
      REQUIRE_MESSAGE(row_of(column, i) == (expected[i] ? expected[i]->value : ""), i);
      REQUIRE_MESSAGE(lengths[i] == (expected[i] ? expected[i]->length : 0), i);
    }
  }
  void expect_copies(stride_table* table, const stride_column& addresses, const Matches& expected) {
    stride_column column{};
    const uint64_t* validity = nullptr;
    const uint32_t* lengths = nullptr;
    REQUIRE_C_OK(stride_match(snapshot_, table, &addresses, values_));
    REQUIRE_C_OK(stride_values_read(values_, &column, &validity));
    REQUIRE_C_OK(stride_values_lengths(values_, &lengths));
    REQUIRE(column.size == expected.size());
    REQUIRE(column.offsets[0] == 0u);
    REQUIRE((validity == nullptr) == expected.empty());
    REQUIRE((lengths == nullptr) == expected.empty());
    expect_rows(column, validity, lengths, expected);
  }
  void expect_references(stride_table* table, const stride_column& addresses,
                         const Matches& expected) {
    uint64_t n = 0;
    const uint64_t* validity = nullptr;
    REQUIRE_C_OK(stride_match_references(snapshot_, table, &addresses, references_));
    REQUIRE_C_OK(stride_references_read(references_, &n, &validity));
    REQUIRE(n == expected.size());
    std::vector<stride_bytes> values(n), keys(n);
    std::vector<uint32_t> lengths(n, 99);
    REQUIRE_C_OK(stride_references_get(references_, 0, n, values.data()));
    REQUIRE_C_OK(stride_references_prefixes(references_, 0, n, keys.data(), lengths.data()));
    for (size_t i = 0; i < n; ++i) {
      REQUIRE_MESSAGE(bit(validity, i) == expected[i].has_value(), i);
      REQUIRE_MESSAGE((values[i].data != nullptr) == expected[i].has_value(), i);
      REQUIRE_MESSAGE((keys[i].data != nullptr) == expected[i].has_value(), i);
      if (expected[i]) {
        REQUIRE_MESSAGE(match_of(keys[i], values[i], lengths[i]) == *expected[i], i);
      } else {
        REQUIRE_MESSAGE(lengths[i] == 0u, i);
      }
    }
  }
  void expect_into(stride_table* table, const stride_column& addresses, const Matches& expected,
                   stride_values* workspace, uint64_t data_bytes, int status) {
    uint64_t n = expected.size(), bytes = 0;
    for (const auto& match : expected) bytes += match ? match->value.size() : 0;
    // Has exactly that size, so that a sanitizer sees what goes beyond.
    std::unique_ptr<char[]> data(new char[data_bytes]);
    std::vector<uint64_t> offsets(n + 1), validity((n + 63) / 64, ~0ull);
    std::vector<uint32_t> lengths(n, 99);
    stride_buffers b{sizeof b, data.get(), data_bytes, offsets.data(), validity.data(), 99};
    REQUIRE_MESSAGE(
        stride_match_into(snapshot_, table, &addresses, workspace, &b, lengths.data()) == status,
        stride_last_error()->text);
    REQUIRE(b.needed == bytes);
    REQUIRE(offsets[n] == bytes);
    if (status == STRIDE_OK) {
      expect_rows({data.get(), offsets.data(), n, 0}, validity.data(), lengths.data(), expected);
      REQUIRE_C_OK(stride_match_into(snapshot_, table, &addresses, workspace, &b, nullptr));
      return;
    }
    CHECK_MESSAGE(std::string(stride_last_error()->text).find("too_small: the values have") !=
                      std::string::npos,
                  stride_last_error()->text);
    CHECK(std::string(stride_last_error()->remedy).find("stride_match()") != std::string::npos);
    for (size_t i = 0; i < n; ++i) {
      REQUIRE_MESSAGE(bit(validity.data(), i) == expected[i].has_value(), i);
      REQUIRE_MESSAGE(lengths[i] == (expected[i] ? expected[i]->length : 0), i);
    }
  }

  // All prefixes of an address, of snapshot_.
  std::vector<Match> all_of(stride_table* table, const std::string& address) {
    uint64_t n = 99;
    int status = stride_match_all(snapshot_, table, address.data(), address.size(), 0, nullptr,
                                  nullptr, nullptr, &n);
    CHECK_MESSAGE(status == (n == 0 ? STRIDE_OK : STRIDE_TOO_SMALL), stride_last_error()->text);
    std::vector<stride_bytes> values(n), keys(n);
    std::vector<uint32_t> lengths(n);
    CHECK_C_OK(stride_match_all(snapshot_, table, address.data(), address.size(), n, values.data(),
                                keys.data(), lengths.data(), &n));
    CHECK(n == values.size());
    std::vector<Match> all;
    for (uint64_t i = 0; i < n; ++i) all.push_back(match_of(keys[i], values[i], lengths[i]));
    return all;
  }
  // The keys and values of snapshot_.
  Model inside(stride_table* table, const std::string& key) {
    Model found;
    stride_scan* scan = nullptr;
    stride_column k{}, v{};
    CHECK_C_OK(stride_scan_inside(snapshot_, table, key.data(), key.size(), &scan));
    std::string last;
    do {
      CHECK_C_OK(stride_scan_next(scan, &k, &v));
      for (uint64_t i = 0; i < k.size; ++i) {
        if (!found.empty()) CHECK(last < row_of(k, i));
        last = row_of(k, i);
        found[last] = row_of(v, i);
      }
    } while (k.size > 0);
    CHECK_C_OK(stride_scan_release(scan));
    return found;
  }

  stride_table* routes_ = nullptr;
  stride_values* values_ = nullptr;
  stride_references* references_ = nullptr;
};

}  // namespace stride::test
