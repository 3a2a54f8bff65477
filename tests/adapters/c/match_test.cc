// Prefix tables through the C interface: what they are, and every way to match.
#include <algorithm>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/prefix_fixture.h"
#include "tests/support/prefix_model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

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

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.OptionsOfTables", "[CPrefixTest]") {
  stride_table_options o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_table_options_init(&o, sizeof o));
  CHECK(o.size == sizeof o);
  CHECK(o.key_width + o.address_bits == 0u);
  CHECK_C_ERROR(stride_table_options_init(&o, 8), invalid, "16");
  CHECK_C_ERROR(stride_table_options_init(nullptr, sizeof o), invalid, "options is NULL");

  // The defaults are as without options.
  stride_table* table = nullptr;
  uint32_t width = 99, bits = 99;
  for (const stride_table_options* given : {static_cast<stride_table_options*>(nullptr), &o}) {
    REQUIRE_C_OK(stride_table_open_or_create_with(db_, "t", given, &table));
    CHECK_C_OK(stride_table_key_width(table, &width));
    CHECK_C_OK(stride_table_address_bits(table, &bits));
    CHECK(width + bits == 0u);
    CHECK_C_OK(stride_table_release(table));
  }
  o.key_width = 8;
  REQUIRE_C_OK(stride_table_create_with(db_, "wide", &o, &table));
  CHECK_C_OK(stride_table_key_width(table, &width));
  CHECK(width == 8u);
  CHECK_C_OK(stride_table_release(table));

  CHECK_C_OK(stride_table_key_width(routes_, &width));
  CHECK_C_OK(stride_table_address_bits(routes_, &bits));
  CHECK(width == 5u);
  CHECK(bits == 32u);
  CHECK_C_ERROR(stride_table_address_bits(routes_, nullptr), invalid, "address_bits is NULL");
  o = {sizeof o, 0, 32};
  CHECK_C_ERROR(stride_table_create_with(db_, "routes", &o, &table), STRIDE_ALREADY_EXISTS,
                "routes");
  CHECK(table == nullptr);
  REQUIRE_C_OK(stride_table_open_or_create_with(db_, "routes", &o, &table));
  CHECK_C_OK(stride_table_release(table));
  CHECK_C_ERROR(stride_table_open_or_create_with(db_, "t", &o, &table), invalid,
                "an ordinary table, not a table of prefixes of 32-bit addresses");
  CHECK_C_ERROR(stride_table_open_or_create(db_, "routes", 5, &table), invalid,
                "a table of prefixes of 32-bit addresses, not an ordinary table");
  o.address_bits = 128;
  CHECK_C_ERROR(stride_table_open_or_create_with(db_, "routes", &o, &table), invalid, "128-bit");
  o.address_bits = 65536;
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &table), invalid, "65536 is too large");
  o = {sizeof o, 5, 32};
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &table), invalid, "key_width 5");
  o = {8, 0, 32};
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o, &table), invalid, "stride_table_options");
  CHECK_C_ERROR(stride_table_open(db_, "x", &table), STRIDE_NOT_FOUND, "x");
}

// A program that was compiled with a later header.
TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.LargerOptions", "[CPrefixTest]") {
  struct {
    stride_table_options options;
    uint64_t later;
  } o;
  std::memset(&o, 0xEE, sizeof o);
  REQUIRE_C_OK(stride_table_options_init(&o.options, sizeof o));
  CHECK(o.options.size == sizeof o);
  CHECK(o.later == 0u);
  o.options.address_bits = 128;
  stride_table* table = nullptr;
  uint32_t bits = 0;
  REQUIRE_C_OK(stride_table_create_with(db_, "v6", &o.options, &table));
  CHECK_C_OK(stride_table_address_bits(table, &bits));
  CHECK(bits == 128u);
  CHECK_C_OK(stride_table_release(table));
  o.later = 1;
  CHECK_C_ERROR(stride_table_create_with(db_, "x", &o.options, &table), STRIDE_UNAVAILABLE,
                "lacks");
}

// address_bits is where a reserved member was: a program of then has the same struct.
TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.TablesAreListedAsBefore", "[CPrefixTest]") {
  struct FirstInfo {
    size_t size;
    const char* name;
    uint32_t key_width, reserved;
    uint64_t runs, rows, bytes_on_disk;
  };
  static_assert(sizeof(FirstInfo) == sizeof(stride_table_info) &&
                offsetof(FirstInfo, reserved) == offsetof(stride_table_info, address_bits) &&
                offsetof(FirstInfo, runs) == offsetof(stride_table_info, runs));
  put_routes({{"10.0.0.0/8", "ten"}});
  stride_table* strings = create("strings", STRIDE_BYTE_STRINGS);
  CHECK_C_OK(stride_table_release(strings));
  stride_tables* list;
  REQUIRE_C_OK(stride_table_list(db_, &list));
  stride_table_info info{};
  info.size = sizeof info;
  std::vector<uint32_t> bits, widths;
  for (uint64_t i = 0; i < 3; ++i) {
    REQUIRE_C_OK(stride_tables_get(list, i, &info));
    bits.push_back(info.address_bits);
    widths.push_back(info.key_width);
  }
  CHECK(bits == (std::vector<uint32_t>{0, 32, STRIDE_BYTE_STRINGS}));
  CHECK(widths == (std::vector<uint32_t>{0, 5, 0}));
  FirstInfo first{};
  first.size = sizeof first;
  REQUIRE_C_OK(stride_tables_get(list, 1, reinterpret_cast<stride_table_info*>(&first)));
  CHECK(std::string_view(first.name) == "routes");
  CHECK(first.rows == 1u);
  CHECK_C_OK(stride_tables_release(list));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.KindsOutliveTheHandle", "[CPrefixTest]") {
  stride_table* v6 = create("v6", 128);
  put(v6, {prefix_key("2001:db8::/32", 128)}, {"docs"});
  CHECK_C_OK(stride_table_release(v6));
  REQUIRE_C_OK(stride_close(db_));
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  uint32_t bits = 0;
  REQUIRE_C_OK(stride_table_open(db_, "v6", &v6));
  CHECK_C_OK(stride_table_address_bits(v6, &bits));
  CHECK(bits == 128u);
  snapshot();
  expect_matches(v6, {address_of("2001:db8::7", 128), address_of("2001:db9::", 128)},
                 {Match{prefix_key("2001:db8::/32", 128), "docs", 32}, std::nullopt});
  CHECK_C_OK(stride_table_release(v6));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.EmptyTable", "[CPrefixTest]") {
  snapshot();
  expect_matches(routes_, addresses_of({"0.0.0.0", "10.1.2.3", "255.255.255.255"}), Matches(3));
  expect_matches(routes_, {}, {});
  CHECK(all_of(routes_, address_of("10.1.2.3", 32)).empty());
  CHECK(inside(routes_, prefix_key("0.0.0.0/0", 32)).empty());
  // No rows have no width.
  stride_column nothing{};
  CHECK_C_OK(stride_match(snapshot_, routes_, &nothing, values_));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.DefaultRouteOnly", "[CPrefixTest]") {
  put_routes({{"0.0.0.0/0", "default"}});
  snapshot();
  Match all = route("0.0.0.0/0", "default");
  CHECK(all.length == 0u);
  expect_matches(routes_, addresses_of({"0.0.0.0", "10.1.2.3", "255.255.255.255"}),
                 {all, all, all});
  CHECK(all_of(routes_, address_of("10.1.2.3", 32)) == std::vector{all});
  CHECK(inside(routes_, prefix_key("0.0.0.0/0", 32)) == (Model{{all.key, "default"}}));
  CHECK(inside(routes_, prefix_key("0.0.0.0/1", 32)).empty());
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.NestedRoutes", "[CPrefixTest]") {
  put_routes({{"10.0.0.0/8", "ten"},
              {"10.1.0.0/16", "one"},
              {"10.1.2.0/24", ""},
              {"10.1.2.3", "host"},
              {"192.168.0.0/16", "home"}});
  snapshot();
  Match ten = route("10.0.0.0/8", "ten"), one = route("10.1.0.0/16", "one"),
        none = route("10.1.2.0/24", ""), host = route("10.1.2.3/32", "host"),
        home = route("192.168.0.0/16", "home");
  expect_matches(routes_,
                 addresses_of({"10.1.2.3", "11.0.0.0", "10.1.2.4", "10.1.3.0", "10.2.0.0",
                               "192.168.255.255", "9.255.255.255", "10.1.2.3"}),
                 {host, std::nullopt, none, one, ten, home, std::nullopt, host});
  CHECK(all_of(routes_, address_of("10.1.2.3", 32)) == (std::vector{ten, one, none, host}));
  CHECK(all_of(routes_, address_of("10.1.9.9", 32)) == (std::vector{ten, one}));
  CHECK(all_of(routes_, address_of("11.0.0.0", 32)).empty());
  Model in_ten = inside(routes_, prefix_key("10.0.0.0/8", 32));
  CHECK(in_ten == (Model{{ten.key, "ten"}, {one.key, "one"}, {none.key, ""}, {host.key, "host"}}));
  CHECK(inside(routes_, prefix_key("10.1.2.0/23", 32)) ==
        (Model{{none.key, ""}, {host.key, "host"}}));
  CHECK(inside(routes_, prefix_key("0.0.0.0/0", 32)).size() == 5u);

  // Prefixes are keys like any others.
  stride_snapshot* before = snapshot_;
  snapshot_ = nullptr;
  stride_transaction* t;
  CRows gone({one.key, host.key});
  stride_column column = gone.column();
  REQUIRE_C_OK(stride_begin(db_, &t));
  REQUIRE_C_OK(stride_erase(t, routes_, &column));
  REQUIRE_C_OK(stride_put_one(t, routes_, none.key.data(), none.key.size(), "new", 3));
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  snapshot();
  none.value = "new";
  expect_matches(routes_, addresses_of({"10.1.2.3", "10.1.3.0"}), {none, ten});
  CHECK(scan(routes_) == (Strings{ten.key, none.key, home.key}));
  stride_bytes value;
  CHECK_C_OK(stride_get_one(snapshot_, routes_, ten.key.data(), ten.key.size(), &value));
  CHECK(std::string(static_cast<const char*>(value.data), value.size) == "ten");
  std::swap(before, snapshot_);
  expect_matches(routes_, addresses_of({"10.1.2.3", "10.1.3.0"}), {host, one});
  CHECK_C_OK(stride_snapshot_release(before));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.Ipv6", "[CPrefixTest]") {
  stride_table* v6 = create("v6", 128);
  auto match = [](const char* prefix, const char* value, uint32_t length) {
    return Match{prefix_key(prefix, 128), value, length};
  };
  Match all = match("::/0", "all", 0), docs = match("2001:db8::/32", "docs", 32),
        net = match("2001:db8:0:1::/64", "net", 64), host = match("2001:db8::1", "host", 128);
  Strings keys, values;
  for (const Match& m : {all, docs, net, host}) {
    keys.push_back(m.key);
    values.push_back(m.value);
  }
  put(v6, keys, values);
  snapshot();
  Strings addresses;
  for (const char* text : {"2001:db8::1", "2001:db8::2", "2001:db8:0:1:ffff::", "::1"})
    addresses.push_back(address_of(text, 128));
  expect_matches(v6, addresses, {host, docs, net, all});
  CHECK(all_of(v6, addresses[0]) == (std::vector{all, docs, host}));
  CHECK(inside(v6, docs.key) == (Model{{docs.key, "docs"}, {net.key, "net"}, {host.key, "host"}}));
  CHECK_C_OK(stride_table_release(v6));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.ByteStrings", "[CPrefixTest]") {
  stride_table* paths = create("paths", STRIDE_BYTE_STRINGS);
  put(paths, {"/", "/a", "/a/b\0"s, "/a/b\0c"s}, {"root", "a", "b0", "b0c"});
  snapshot();
  Match root{"/", "root", 8}, a{"/a", "a", 16}, b0{"/a/b\0"s, "b0", 40};
  expect_matches(paths, {"/a/b\0d"s, "/a/b", "/b", "a", "", "/a/b\0"s},
                 {b0, a, root, std::nullopt, std::nullopt, b0});
  CHECK(all_of(paths, "/a/b\0d"s) == (std::vector{root, a, b0}));
  CHECK(all_of(paths, "").empty());
  CHECK(inside(paths, "/a/") == (Model{{"/a/b\0"s, "b0"}, {"/a/b\0c"s, "b0c"}}));
  CHECK(inside(paths, "").size() == 4u);
  // The prefix of no bytes is one too, with an empty value.
  put(paths, {""}, {""});
  snapshot();
  expect_matches(paths, {"x", ""}, {Match{"", "", 0}, Match{"", "", 0}});
  CHECK_C_OK(stride_table_release(paths));
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.AgreesWithAModel", "[CPrefixTest]") {
  for (uint32_t bits : {7u, 32u, 128u, 300u, STRIDE_BYTE_STRINGS}) {
    std::mt19937_64 random(seed());
    PrefixModel model(bits);
    RandomPrefixes prefixes(bits, random);
    stride_table* table = create(std::to_string(bits).c_str(), bits);
    for (int commit = 0; commit < 3; ++commit) {
      Strings keys, values;
      for (int i = 0; i < 200; ++i) {
        keys.push_back(prefixes.key(model));
        values.push_back(std::string(random() % 20, char('a' + commit)));
        model.entries()[keys.back()] = values.back();
      }
      put(table, keys, values);
    }
    snapshot();
    Strings addresses;
    Matches expected;
    for (int i = 0; i < 300; ++i) {
      addresses.push_back(prefixes.address());
      expected.emplace_back();
      auto all = model.all_of(addresses.back());
      std::vector<Match> matches;
      for (auto it : all) matches.push_back({it->first, it->second, model.length_of(it->first)});
      if (!all.empty()) expected.back() = matches.back();
      if (i % 10 == 0) REQUIRE(all_of(table, addresses.back()) == matches);
    }
    expect_matches(table, addresses, expected);
    for (int i = 0; i < 20; ++i) {
      std::string key = prefixes.key(model);
      REQUIRE(inside(table, key) == model.inside(key));
    }
    CHECK_C_OK(stride_table_release(table));
  }
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.KeysThatAreNoneAreNotWritten", "[CPrefixTest]") {
  stride_transaction* t;
  REQUIRE_C_OK(stride_begin(db_, &t));
  auto put_one = [&](const std::string& key) {
    return stride_put_one(t, routes_, key.data(), key.size(), "v", 1);
  };
  CHECK_C_ERROR(put_one("\x0A\0\0\x01\x08"s), invalid, "bits behind the prefix's 8 bits are set");
  CHECK_C_ERROR(put_one("\x0A\0\0\0\x21"s), invalid, "33 bits");
  CHECK_C_ERROR(put_one("\x0A\0\0\0"s), invalid, "4 bytes");
  CRows bad({"\x0A\0\0\x01\x08"s});
  stride_column column = bad.column();
  CHECK_C_ERROR(stride_put(t, routes_, &column, &column), invalid, "row 0: bits behind");
  CHECK_C_ERROR(stride_erase(t, routes_, &column), invalid, "row 0: bits behind");
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  CHECK(scan(routes_) == Strings{});
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.WrongAddressesTablesAndResults", "[CPrefixTest]") {
  put_routes({{"10.0.0.0/8", "ten"}});
  snapshot();
  CRows good({"\x0A\0\0\0"s}), wrong({"\x0A\0\0\0"s, "\x0A\0\0\0\0"s});
  stride_column one = good.column(), two = wrong.column(), fixed{"12345678", nullptr, 1, 8};
  char data[16];
  uint64_t offsets[3], validity;
  stride_buffers b{sizeof b, data, sizeof data, offsets, &validity, 99};
  stride_bytes value, key;
  stride_scan* scan = nullptr;
  uint32_t length;
  uint64_t n = 99;
  CHECK_C_ERROR(stride_match(snapshot_, routes_, &two, values_), invalid,
                "row 1: an address has 5 bytes, but those of table 'routes' have 4");
  CHECK_C_ERROR(stride_match(snapshot_, routes_, &fixed, values_), invalid, "8 bytes");
  CHECK_C_ERROR(stride_match_into(snapshot_, routes_, &two, values_, &b, nullptr), invalid,
                "row 1");
  CHECK(b.needed == 0u);
  CHECK_C_ERROR(stride_match_references(snapshot_, routes_, &two, references_), invalid, "row 1");
  CHECK_C_ERROR(stride_match_one(snapshot_, routes_, "123", 3, &value, &key, &length), invalid,
                "3 bytes");
  CHECK_C_ERROR(stride_match_all(snapshot_, routes_, "123", 3, 1, &value, nullptr, nullptr, &n),
                invalid, "3 bytes");
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "123", 3, &scan), invalid, "3 bytes");
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "\x0A\0\0\x01\x08", 5, &scan), invalid,
                "no prefix");
  CHECK(scan == nullptr);
  CHECK(n == 99u);

  // A table that has no prefixes.
  const char* why = "table 't' is no prefix table";
  CHECK_C_ERROR(stride_match(snapshot_, table_, &one, values_), invalid, why);
  CHECK_C_ERROR(stride_match_into(snapshot_, table_, &one, nullptr, &b, nullptr), invalid, why);
  CHECK_C_ERROR(stride_match_references(snapshot_, table_, &one, references_), invalid, why);
  CHECK_C_ERROR(stride_match_one(snapshot_, table_, "1234", 4, &value, nullptr, nullptr), invalid,
                why);
  CHECK_C_ERROR(stride_match_all(snapshot_, table_, "1234", 4, 0, nullptr, nullptr, nullptr, &n),
                invalid, why);
  CHECK_C_ERROR(stride_scan_inside(snapshot_, table_, "12345", 5, &scan), invalid, why);

  // Nothing of it is a result, and a lookup is no match.
  const uint32_t* lengths;
  stride_column column;
  CHECK_C_ERROR(stride_values_read(values_, &column, nullptr), invalid, "first");
  CHECK_C_ERROR(stride_values_lengths(values_, &lengths), invalid, "stride_match()");
  CHECK_C_ERROR(stride_references_prefixes(references_, 0, 0, &key, &length), invalid, "first");
  REQUIRE_C_OK(stride_match(snapshot_, routes_, &one, values_));
  REQUIRE_C_OK(stride_match_references(snapshot_, routes_, &one, references_));
  CHECK_C_OK(stride_values_lengths(values_, &lengths));
  CHECK(lengths[0] == 8u);
  CHECK_C_ERROR(stride_values_lengths(values_, nullptr), invalid, "lengths is NULL");
  CHECK_C_OK(stride_references_prefixes(references_, 0, 1, nullptr, nullptr));
  CHECK_C_OK(stride_references_prefixes(references_, 1, 0, &key, &length));
  CHECK_C_ERROR(stride_references_prefixes(references_, 0, 2, &key, &length), invalid,
                "addresses 0 and 2 in all were asked for, of 1");
  CHECK_C_ERROR(stride_references_get(references_, 2, 0, &value), invalid, "of 1");
  REQUIRE_C_OK(stride_get(snapshot_, routes_, &one, values_));
  REQUIRE_C_OK(stride_find(snapshot_, routes_, &one, references_));
  CHECK_C_OK(stride_values_read(values_, &column, nullptr));
  CHECK_C_ERROR(stride_values_lengths(values_, &lengths), invalid, "no result of a match");
  CHECK_C_ERROR(stride_references_prefixes(references_, 0, 1, &key, &length), invalid,
                "no result of a match");

  REQUIRE_C_OK(stride_table_drop(db_, "routes"));
  snapshot();
  CHECK_C_ERROR(stride_match(snapshot_, routes_, &one, values_), STRIDE_NOT_FOUND, "'routes'");
  CHECK_C_ERROR(stride_match_one(snapshot_, routes_, "1234", 4, &value, nullptr, nullptr),
                STRIDE_NOT_FOUND, "'routes'");
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "12345", 5, &scan), STRIDE_NOT_FOUND,
                "'routes'");
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.RoomForAllPrefixes", "[CPrefixTest]") {
  put_routes({{"0.0.0.0/0", "default"}, {"10.0.0.0/8", "ten"}, {"10.1.0.0/16", "one"}});
  snapshot();
  const std::string address = address_of("10.1.2.3", 32);
  auto match_all = [&](uint64_t room, stride_bytes* values, uint32_t* lengths, uint64_t* n) {
    return stride_match_all(snapshot_, routes_, address.data(), address.size(), room, values,
                            nullptr, lengths, n);
  };
  stride_bytes values[4] = {};
  uint32_t lengths[4] = {99, 99, 99, 99};
  uint64_t n = 0;
  CHECK_C_ERROR(match_all(2, values, lengths, &n), STRIDE_TOO_SMALL,
                "the address has 3 prefixes and there is room for 2");
  CHECK(n == 3u);
  CHECK(values[0].data == nullptr);
  CHECK(lengths[0] == 99u);
  CHECK_C_OK(match_all(4, nullptr, lengths, &n));
  CHECK(n == 3u);
  CHECK(std::vector<uint32_t>(lengths, lengths + 4) == (std::vector<uint32_t>{0, 8, 16, 99}));
  CHECK_C_OK(match_all(3, values, nullptr, &n));
  CHECK(std::string(static_cast<const char*>(values[2].data), values[2].size) == "one");
  CHECK(values[3].data == nullptr);
  CHECK_C_ERROR(match_all(4, values, lengths, nullptr), invalid, "n is NULL");
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.NullArguments", "[CPrefixTest]") {
  put_routes({{"10.0.0.0/8", "ten"}});
  snapshot();
  stride_column one{"\x0A\0\0\0", nullptr, 1, 4};
  uint64_t offsets[2], validity, n;
  stride_buffers b{sizeof b, nullptr, 0, offsets, &validity, 0};
  stride_bytes value;
  stride_scan* scan;
  CHECK(stride_match(snapshot_, routes_, nullptr, values_) == invalid);
  CHECK(stride_match_into(snapshot_, routes_, nullptr, nullptr, &b, nullptr) == invalid);
  CHECK(stride_match_into(snapshot_, routes_, &one, nullptr, nullptr, nullptr) == invalid);
  b.validity = nullptr;
  CHECK_C_ERROR(stride_match_into(snapshot_, routes_, &one, nullptr, &b, nullptr), invalid,
                "validity");
  CHECK(stride_match_references(snapshot_, routes_, nullptr, references_) == invalid);
  CHECK(stride_match_one(snapshot_, routes_, "1234", 4, nullptr, nullptr, nullptr) == invalid);
  CHECK(stride_match_one(snapshot_, routes_, nullptr, 4, &value, nullptr, nullptr) == invalid);
  CHECK(stride_match_all(snapshot_, routes_, nullptr, 4, 0, nullptr, nullptr, nullptr, &n) ==
        invalid);
  CHECK(stride_scan_inside(snapshot_, routes_, nullptr, 5, &scan) == invalid);
  CHECK_C_ERROR(stride_scan_inside(snapshot_, routes_, "12345", 5, nullptr), invalid,
                "scan is NULL");
  CHECK_C_OK(stride_match_one(snapshot_, routes_, "\x0A\0\0\0", 4, &value, nullptr, nullptr));
  CHECK(value.size == 3u);
}

TEST_CASE_METHOD(CPrefixTest, "CPrefixTest.ReferencesOutliveTheSnapshotAndTheDatabase",
                 "[CPrefixTest]") {
  put_routes({{"10.0.0.0/8", "ten"}});
  snapshot();
  CRows rows(addresses_of({"11.0.0.0", "10.1.2.3"}));
  stride_column addresses = rows.column();
  REQUIRE_C_OK(stride_match_references(snapshot_, routes_, &addresses, references_));
  REQUIRE_C_OK(stride_match(snapshot_, routes_, &addresses, values_));
  REQUIRE_C_OK(stride_table_drop(db_, "routes"));
  REQUIRE_C_OK(stride_snapshot_release(snapshot_));
  REQUIRE_C_OK(stride_close(db_));
  snapshot_ = nullptr;
  db_ = nullptr;
  stride_bytes values[2], keys[2];
  uint32_t lengths[2];
  CHECK_C_OK(stride_references_get(references_, 0, 2, values));
  CHECK_C_OK(stride_references_prefixes(references_, 0, 2, keys, lengths));
  CHECK(values[0].data == nullptr);
  CHECK(match_of(keys[1], values[1], lengths[1]) == route("10.0.0.0/8", "ten"));
  stride_column column;
  CHECK_C_OK(stride_values_read(values_, &column, nullptr));
  CHECK(row_of(column, 1) == "ten");
}

}  // namespace
}  // namespace stride::test
