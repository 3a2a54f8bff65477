// Every way to match through the C interface.
#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/adapters/c/prefix_table_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/prefix_model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using namespace std::string_literals;

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
