// Tables of prefixes of IPv4 addresses: examples, many prefixes, compactions, threads, and what is
// refused.
#include <algorithm>
#include <atomic>

#include "tests/engine/prefix/prefix_test_base.h"
#include "tests/support/catch.h"
#include "tests/support/prefix_model.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class PrefixOf32Test : public PrefixTestBase {
 protected:
  PrefixOf32Test() : PrefixTestBase(32) {}
  static std::string key(std::string_view text) { return *parse_prefix(text, 32); }
  static std::string address(std::string_view text) { return *parse_address(text, 32); }
  // Value of the longest prefix, or "none".
  std::string hop(const Snapshot& snapshot, std::string_view of) {
    auto entry = snapshot.match(table_, as_bytes(address(of)));
    CHECK_OK(entry);
    return entry.ok() && *entry ? text((*entry)->value) : "none";
  }
};

TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.RoutesAsInAnExample", "[PrefixOf32Test]") {
  commit({{key("0.0.0.0/0"), "default"}, {key("10.0.0.0/8"), "ten"}, {key("10.1.0.0/16"), "one"}});
  Snapshot before = database_->snapshot();
  CHECK(hop(before, "10.1.2.3") == "one");
  CHECK(hop(before, "10.2.0.0") == "ten");
  CHECK(hop(before, "11.0.0.0") == "default");
  commit({{key("10.1.0.0/16"), std::nullopt}, {key("10.1.2.0/24"), "two"}});
  Snapshot after = database_->snapshot();
  CHECK(hop(after, "10.1.2.3") == "two");
  CHECK(hop(after, "10.1.3.3") == "ten");
  CHECK(hop(before, "10.1.2.3") == "one");
  std::vector<std::string> inside;
  auto scan = after.inside(table_, as_bytes(key("10.0.0.0/8")));
  REQUIRE_OK(scan);
  Iterator it(std::move(*scan));
  for (; it.valid(); it.next()) inside.push_back(format_prefix(it.key(), 32));
  CHECK(inside == (std::vector<std::string>{"10.0.0.0/8", "10.1.2.0/24"}));
}

// A matcher that is made late serves versions that were committed before it was there.
TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.LateMatchersAreRight", "[PrefixOf32Test]") {
  std::vector<std::pair<Snapshot, PrefixModel>> kept;
  for (int i = 0; i < 6; ++i) {
    commit(random_changes(50));
    kept.emplace_back(database_->snapshot(), model_);
  }
  for (size_t i : {2, 4, 1, 5, 3, 0}) expect_all(kept[i].first, kept[i].second);
}

// A base of several segments with erasures, changes over it, and a new base once they are too
// many.
TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.ManyPrefixes", "[PrefixOf32Test]") {
  auto load = [&](size_t n) {
    Rows keys, values;
    for (size_t i = 0; i < n; ++i) {
      uint32_t length = 8 + static_cast<uint32_t>(random_() % 25);
      std::string address(4, '\0');
      for (char& c : address) c = static_cast<char>(random_());
      std::string k = model_.key(address, length);
      keys.add(k);
      values.add(model_.entries()[k] = value());
    }
    WriteTransaction t = database_->begin();
    REQUIRE_OK(t.put_view(table_, keys.column(), values.column()));
    REQUIRE_OK(t.commit(Durability::none));
  };
  auto erase_some = [&] {
    Changes changes;
    for (const auto& [k, v] : model_.entries())
      if (random_() % 16 == 0) changes.emplace_back(k, std::nullopt);
    commit(changes);
  };
  auto check = [&] {
    std::vector<std::string> addresses;
    for (int i = 0; i < 5000; ++i) {
      auto it = model_.entries().lower_bound(prefixes_.address());
      for (char& c : addresses.emplace_back(4, '\0')) c = static_cast<char>(random_());
      if (i % 2 && it != model_.entries().end()) addresses.back() = model_.address_of(it->first);
    }
    expect_match(database_->snapshot(), table_, model_, addresses);
  };
  load(20'000);
  erase_some();
  check();
  load(3'000);
  erase_some();
  check();
  load(70'000);
  check();
  erase_some();
  check();
  Snapshot before = database_->snapshot();
  PrefixModel model = model_;
  REQUIRE_OK(database_->compact());
  check();
  load(1'000);
  erase_some();
  check();
  expect_match(before, table_, model, random_addresses(model, 1000));
}

TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.FoldsItself", "[PrefixOf32Test]") {
  Snapshot first = database_->snapshot();
  uint64_t max_runs = 0;
  for (int i = 0; i < 150; ++i) {
    commit({{prefixes_.key(model_), value()}});
    max_runs = std::max(max_runs, runs());
    if (i % 10 == 0)
      expect_match(database_->snapshot(), table_, model_, random_addresses(model_, 20));
  }
  CHECK(max_runs == 64u);
  expect_all();
  expect_all(first, PrefixModel(32));
  open();
  expect_all();
}

// The n-th change of the file system fails: first the commit's own, then those of the compaction,
// until none does.
TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.AFailedFoldLeavesTheCommit", "[PrefixOf32Test]") {
  while (runs() < 64) commit({{prefixes_.key(model_), value()}});
  REQUIRE_OK(database_->create_table("z"));  // and with it all commits before are synced
  int failed_commits = 0, failed_folds = 0;
  for (uint64_t n = 1; runs() >= 64; ++n) {
    REQUIRE(n < 100u);
    std::string k = prefixes_.key(model_), v = value();
    WriteTransaction t = database_->begin();
    REQUIRE_OK(t.put(table_, k, v));
    files_.fail_call(n, StatusCode::no_space);
    Status s = t.commit(Durability::sync);
    files_.fail_call(0, StatusCode::no_space);
    if (s.ok()) model_.entries()[k] = v;
    failed_commits += !s.ok();
    failed_folds += s.ok() && runs() > 64;
    expect_match(database_->snapshot(), table_, model_, random_addresses(model_, 30));
    if (database_->begin().commit().code() == StatusCode::poisoned) {
      open();
      // After a failed sync nobody knows whether the commit is in the log.
      auto there = database_->snapshot().get(table_, k);
      REQUIRE_OK(there);
      if (*there) model_.entries()[k] = text(**there);
    }
    expect_match(database_->snapshot(), table_, model_, random_addresses(model_, 30));
  }
  CHECK(failed_commits > 0);
  CHECK(failed_folds > 0);
  CHECK(runs() == 1u);
  expect_all();
}

// All prefixes have the number of the commit as their value; each commit takes the longest ones
// away or brings them back.
TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.ReadersMatchWhileAWriterCommits",
                 "[PrefixOf32Test]") {
  constexpr int commits = 80, subnets = 200;
  std::vector<std::string> keys, longer;
  Rows addresses;
  for (int i = 0; i < subnets; ++i) {
    std::string at = "10.0." + std::to_string(i);
    keys.push_back(key(at + ".0/24"));
    longer.push_back(key(at + ".128/25"));
    addresses.add(address(at + ".129"));
  }
  auto write = [&](int number) {
    Changes changes;
    for (const std::string& k : keys) changes.emplace_back(k, std::to_string(number));
    for (const std::string& k : longer)
      changes.emplace_back(k, number % 2 ? std::nullopt : std::optional(std::to_string(number)));
    commit(changes);
  };
  write(0);
  TestThreads readers;
  for (int r = 0; r < 2; ++r)
    readers.start([&] {
      int last = 0;
      MatchResult result;
      while (!readers.stopping()) {
        Snapshot snapshot = database_->snapshot();
        REQUIRE_OK(snapshot.match(table_, addresses.column(), &result));
        int seen = std::stoi(text(result.value(0)));
        for (int i = 0; i < subnets; ++i) {
          REQUIRE_MESSAGE(text(result.value(i)) == std::to_string(seen), "subnet " << i);
          REQUIRE_MESSAGE(result.lengths[i] == (seen % 2 ? 24u : 25u), "subnet " << i);
        }
        REQUIRE_MESSAGE(seen >= last, "a later snapshot");
        last = seen;
      }
    });
  for (int c = 1; c <= commits; ++c) {
    write(c);
    if (c % 30 == 0) CHECK_OK(database_->compact());
  }
  readers.join();
}

TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.RefusesWhatIsNoPrefix", "[PrefixOf32Test]") {
  WriteTransaction t = database_->begin();
  std::string good = key("10.0.0.0/8"), host_bits = good, too_long = good;
  host_bits[3] = 1;
  too_long[4] = 33;
  for (const auto& [bad, why] :
       {std::pair(host_bits, "8 bits are set"), std::pair(too_long, "33"),
        std::pair(good + "x", "6 bytes"), std::pair(std::string(), "0 bytes")}) {
    Rows keys({good, bad}), values({"1", "2"});
    expect_status(t.put(table_, keys.column(), values.column()), StatusCode::invalid_argument, why);
    expect_status(t.put(table_, keys.column(), values.column()), StatusCode::invalid_argument,
                  "row 1");
    expect_status(t.put(table_, keys.column(), values.column()), StatusCode::invalid_argument,
                  "make_prefix_keys");
    expect_status(t.put_view(table_, keys.column(), values.column()), StatusCode::invalid_argument,
                  "row 1");
    expect_status(t.erase(table_, keys.column()), StatusCode::invalid_argument, "row 1");
    expect_status(t.put(table_, bad, "v"), StatusCode::invalid_argument, why);
    expect_status(t.erase(table_, bad), StatusCode::invalid_argument, why);
  }
  CHECK(t.staged_rows() == 0u);
  REQUIRE_OK(t.commit());
  // A range's bounds are any bytes.
  commit({{good, "1"}});
  t = database_->begin();
  REQUIRE_OK(t.erase_range(table_, as_bytes("\x0A"), as_bytes("\x0B")));
  REQUIRE_OK(t.commit());
  model_.entries().clear();
  expect_all();
}

TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.RefusesWhatIsNoAddress", "[PrefixOf32Test]") {
  commit({{key("0.0.0.0/0"), "default"}});
  Snapshot snapshot = database_->snapshot();
  MatchResult result;
  expect_status(snapshot.match(table_, Rows({"1234", "12345"}).column(), &result),
                StatusCode::invalid_argument, "row 1");
  expect_status(snapshot.match(table_, Column::fixed("12345678", 8, 1), &result),
                StatusCode::invalid_argument, "8 bytes");
  expect_status(snapshot.match(table_, as_bytes("123")).status(), StatusCode::invalid_argument,
                "3");
  expect_status(snapshot.match_all(table_, as_bytes("123")).status(), StatusCode::invalid_argument,
                "3");
  expect_status(snapshot.inside(table_, as_bytes("123")).status(), StatusCode::invalid_argument,
                "3 bytes");
  REQUIRE_OK(snapshot.match(table_, Column(), &result));
  CHECK(result.found.size() == 0u);
  Table plain = *database_->create_table("plain", {.key_width = 5});
  snapshot = database_->snapshot();
  expect_status(snapshot.match(plain, Rows({"1234"}).column(), &result),
                StatusCode::invalid_argument, "no prefix table");
  expect_status(snapshot.match_all(plain, as_bytes("1234")).status(), StatusCode::invalid_argument,
                "address_bits");
  expect_status(snapshot.inside(plain, as_bytes("1234")).status(), StatusCode::invalid_argument,
                "'plain'");
  REQUIRE_OK(database_->drop_table("t"));
  expect_status(database_->snapshot().match(table_, Rows({"1234"}).column(), &result),
                StatusCode::not_found, "'t'");
}

TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.TablesSayWhatTheyAre", "[PrefixOf32Test]") {
  CHECK(table_.address_bits() == 32u);
  CHECK(table_.key_width() == 5u);
  CHECK(database_->create_table("plain", {.key_width = 5})->address_bits() == 0u);
  CHECK(database_->create_table("widest", {.address_bits = 65535})->key_width() == 8194u);
  CHECK(database_->create_table("strings", {.address_bits = byte_strings})->key_width() == 0u);
  open();
  CHECK(database_->open_table("strings")->address_bits() == byte_strings);
  CHECK(database_->open_table("widest")->address_bits() == 65535u);
  REQUIRE(database_->tables().size() == 4u);
  CHECK(database_->tables()[0].address_bits == 32u);
  CHECK(database_->tables()[1].address_bits == 0u);
  auto refused = [&](const char* name, const TableOptions& options, const char* why) {
    expect_status(database_->open_or_create_table(name, options).status(),
                  StatusCode::invalid_argument, why);
  };
  refused("t", {}, "not an ordinary table");
  refused("t", {.key_width = 5}, "not an ordinary table");
  refused("t", {.address_bits = 33}, "32-bit");
  refused("t", {.key_width = 5, .address_bits = 32}, "key_width");
  refused("plain", {.address_bits = 32}, "is an ordinary table");
  refused("strings", {.address_bits = 32}, "byte strings");
  refused("new", {.address_bits = 65536}, "65535");
  refused("new", {.key_width = 1, .address_bits = byte_strings}, "key_width");
  expect_status(database_->create_table("new", {.key_width = 5, .address_bits = 32}).status(),
                StatusCode::invalid_argument, "key_width");
}

// What a match is built from, or what it refers to, is damaged.
TEST_CASE_METHOD(PrefixOf32Test, "PrefixOf32Test.DamageIsReported", "[PrefixOf32Test]") {
  limit_ = 1;
  open();
  Rows keys, values;
  constexpr int rows = 40'000;
  for (uint32_t i = 0; i < rows; ++i) {
    std::string address = {static_cast<char>(i >> 8), static_cast<char>(i), 0, 0};
    keys.add(model_.key(address, 16));
    values.add("value" + std::to_string(i));
  }
  WriteTransaction t = database_->begin();
  REQUIRE_OK(t.put(table_, keys.column(), values.column()));
  REQUIRE_OK(t.commit());
  database_.reset();
  std::string path;
  auto names = files_.list("/db");
  for (const std::string& name : *names)
    if (name.ends_with(".seg")) path = "/db/" + name;
  auto file = files_.open(path, OpenMode::write);
  REQUIRE_OK(file);
  uint64_t size = *(*file)->size();
  std::string bytes(size, '\0');
  REQUIRE_OK((*file)->read_at(0, {reinterpret_cast<std::byte*>(bytes.data()), size}));
  auto damaged = [&](const std::string& what, const auto& check) {
    uint64_t at = bytes.find(what);
    REQUIRE(at != std::string::npos);
    char flipped = static_cast<char>(bytes[at] ^ 1);
    REQUIRE_OK((*file)->write_at(at, as_bytes({&flipped, 1})));
    open();
    check();
    database_.reset();
    REQUIRE_OK((*file)->write_at(at, as_bytes({&bytes[at], 1})));
  };
  std::string good = {0, 1, 2, 3},
              bad = {static_cast<char>(30'000 >> 8), static_cast<char>(30'000 & 255), 0, 0};
  damaged(model_.key(bad, 16), [&] {
    for (int i = 0; i < 2; ++i)
      expect_status(database_->snapshot().match(table_, as_bytes(good)).status(),
                    StatusCode::corruption, path);
  });
  damaged("value30000", [&] {
    auto entry = database_->snapshot().match(table_, as_bytes(good));
    REQUIRE_OK(entry);
    CHECK(text((*entry)->value) == "value1");
    expect_status(database_->snapshot().match(table_, as_bytes(bad)).status(),
                  StatusCode::corruption, path);
    MatchResult result;
    expect_status(database_->snapshot().match(table_, Rows({good, bad}).column(), &result),
                  StatusCode::corruption, path);
  });
}

}  // namespace
}  // namespace stride::test
