// What a transaction sees, and what is a conflict.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/memtable/memtable.h"
#include "engine/prefixes.h"
#include "engine/snapshot_version.h"
#include "engine/write/group_writes.h"
#include "engine/write/read_check.h"
#include "tests/engine/transaction/transaction_fixture.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

class TransactionTest : protected TransactionFixture {};

using Names = std::vector<std::string>;

TEST_CASE_METHOD(TransactionTest, "TransactionTest.ReadsASnapshotAndItsOwnChanges",
                 "[TransactionTest]") {
  put(a_, "ann", "1");
  put(a_, "bob", "2");
  put(a_, "cid", "3");
  Transaction t = db_->transaction();
  CHECK(read(t, a_, "ann") == "1");
  put(a_, "dan", "4");  // later
  CHECK_FALSE(read(t, a_, "dan"));
  REQUIRE_OK(t.put(a_, "bob", "20"));
  REQUIRE_OK(t.erase(a_, "cid"));
  REQUIRE_OK(t.put(a_, "eve", "50"));
  REQUIRE_OK(t.put(b_, "ann", "b"));
  CHECK(read(t, a_, "bob") == "20");
  CHECK_FALSE(read(t, a_, "cid"));
  CHECK(read(t, b_, "ann") == "b");
  REQUIRE_OK(t.put(a_, "bob", "21"));

  const Rows queries({"ann", "bob", "cid", "dan", "eve"});
  GetResult got;
  REQUIRE_OK(t.get(a_, queries.column(), &got));
  CHECK(text(got.values[1]) == "21");
  CHECK((got.found[0] && got.found[1] && !got.found[2] && !got.found[3] && got.found[4]));
  FindResult found;
  REQUIRE_OK(t.find(a_, queries.column(), &found));
  CHECK(text(found.value(4)) == "50");
  LowerBoundResult bounds;
  REQUIRE_OK(t.lower_bound(a_, queries.column(), &bounds));
  CHECK(text(bounds.keys[2]) == "eve");
  CHECK(text(bounds.values[2]) == "50");
  CHECK(keys_of(t.scan(a_)) == Names{"ann", "bob", "eve"});
  CHECK(keys_of(t.scan(a_, {.reverse = true})) == Names{"eve", "bob", "ann"});
  CHECK(*t.count(a_) == 3);
  auto it = t.iterate(a_, {.from = "b"});
  REQUIRE_OK(it);
  CHECK(text(it->value()) == "21");
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.CommitsWholeOrNotAtAll", "[TransactionTest]") {
  put(a_, "ann", "1");
  Transaction t = db_->transaction();
  CHECK(read(t, a_, "ann") == "1");
  REQUIRE_OK(t.put(a_, "ann", "2"));
  REQUIRE_OK(t.put(b_, "ann", "3"));
  CHECK(t.staged_rows() == 2);
  CHECK(stored(a_, "ann") == "1");
  REQUIRE_OK(t.commit());
  CHECK_FALSE(t.is_open());
  CHECK(stored(a_, "ann") == "2");
  CHECK(stored(b_, "ann") == "3");

  Transaction late = db_->transaction();
  CHECK(read(late, a_, "ann") == "2");
  put(a_, "ann", "4");
  REQUIRE_OK(late.put(b_, "ann", "never"));
  check_conflict(late.commit(), "a", "ann");
  CHECK(stored(b_, "ann") == "3");

  Transaction aborted = db_->transaction();
  REQUIRE_OK(aborted.put(a_, "ann", "never"));
  aborted.abort();
  CHECK(aborted.commit().code() == StatusCode::closed);
  CHECK(stored(a_, "ann") == "4");
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.BlindWritesNeverConflict", "[TransactionTest]") {
  put(a_, "ann", "1");
  Transaction t = db_->transaction();
  REQUIRE_OK(t.put(a_, "ann", "2"));
  CHECK(read(t, a_, "ann") == "2");  // its own change, which depends on nothing
  REQUIRE_OK(t.erase_range(a_, as_bytes("x"), as_bytes("y")));
  put(a_, "ann", "3");
  put(a_, "x", "3");
  REQUIRE_OK(t.commit());
  CHECK(stored(a_, "ann") == "2");
  CHECK_FALSE(stored(a_, "x"));
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.ReadersNeverConflict", "[TransactionTest]") {
  put(a_, "ann", "1");
  Transaction t = db_->transaction();
  CHECK(read(t, a_, "ann") == "1");
  put(a_, "ann", "2");
  CHECK(read(t, a_, "ann") == "1");
  REQUIRE_OK(t.commit());
}

// What reads, what is changed meanwhile, and whether that is a conflict.
struct Case {
  const char* name;
  std::function<void(Transaction&, const Table&)> read;
  const char* changed;
  bool conflict;
  bool erased = false;
};

void scan_all(Transaction& t, const Table& table, const ScanOptions& options) {
  auto scan = t.scan(table, options);
  REQUIRE_OK(scan);
  for (ScanBatch batch; scan->next(&batch);) {
  }
  REQUIRE_OK(scan->status());
}

std::vector<Case> cases() {
  using T = Transaction;
  auto get = [](const char* key) {
    return [key](T& t, const Table& table) { REQUIRE_OK(t.get(table, key)); };
  };
  auto gets = [](T& t, const Table& table) {
    GetResult result;
    REQUIRE_OK(t.get(table, Rows({"b", "e", "zz"}).column(), &result));
  };
  auto bound = [](const char* key) {
    return [key](T& t, const Table& table) {
      LowerBoundResult result;
      REQUIRE_OK(t.lower_bound(table, Rows({key}).column(), &result));
    };
  };
  auto scan = [](const ScanOptions& options) {
    return [options](T& t, const Table& table) { scan_all(t, table, options); };
  };
  auto first_rows = [](bool reverse) {
    return [reverse](T& t, const Table& table) {
      auto some = t.scan(table, {.reverse = reverse, .batch_rows = 2});
      REQUIRE_OK(some);
      ScanBatch batch;
      REQUIRE(some->next(&batch));
    };
  };
  return {
      {"a key", get("b"), "b", true},
      {"another key", get("b"), "c", false},
      {"a key that is erased", get("b"), "b", true, true},
      {"a key that is not there", get("c"), "c", true},
      {"one of several", gets, "e", true},
      {"one of several that is not there", gets, "zz", true},
      {"none of several", gets, "d", false},
      {"before a lower bound", bound("c"), "cc", true},
      {"a lower bound", bound("c"), "d", true},
      {"a lower bound that is erased", bound("c"), "d", true, true},
      {"behind a lower bound", bound("c"), "da", false},
      {"the query of a lower bound", bound("c"), "c", true},
      {"before the query", bound("c"), "bz", false},
      {"behind all", bound("zz"), "zzz", true},
      {"a scan", scan({.from = "b", .to = "e"}), "d", true},
      {"a phantom in a scan", scan({.from = "b", .to = "e"}), "cc", true},
      {"the end of a scan", scan({.from = "b", .to = "e"}), "e", false},
      {"its end, inclusive", scan({.from = "b", .to = "e", .to_inclusive = true}), "e", true},
      {"its start, exclusive", scan({.from = "b", .to = "e", .from_inclusive = false}), "b", false},
      {"before a scan", scan({.from = "b", .to = "e"}), "az", false},
      {"an empty scan", scan({.from = "ca", .to = "cz"}), "cc", true},
      {"a prefix", scan({.prefix = "b"}), "ba", true},
      {"not the prefix", scan({.prefix = "b"}), "c", false},
      {"a scan downwards", scan({.from = "b", .to = "e", .reverse = true}), "b", true},
      {"rows that were read", first_rows(false), "b", true},
      {"rows that were not", first_rows(false), "d", false},
      {"rows that were read downwards", first_rows(true), "zz", true},
      {"rows that were not downwards", first_rows(true), "c", false},
      {"all rows", [](T& t, const Table& table) { REQUIRE_OK(t.count(table)); }, "q", true},
  };
}

// Each before and after rows have moved from the memtable into segments, before and after that.
TEST_CASE_METHOD(TransactionTest, "TransactionTest.ConflictsAreThoseOfWhatWasRead",
                 "[TransactionTest]") {
  const bool moved_before = GENERATE(false, true), moved_after = GENERATE(false, true);
  const bool large = GENERATE(false, true);
  RunsWith name{std::string(moved_before ? "in segments, " : "in the memtable, ") +
                (moved_after ? "merged meanwhile, " : "") + (large ? "a large commit" : "")};
  for (const Case& c : cases()) {
    INFO(c.name);
    WriteTransaction reset = db_->begin();
    REQUIRE_OK(reset.erase_range(a_, std::nullopt, std::nullopt));
    REQUIRE_OK(reset.commit());
    for (const char* key : {"a", "b", "d", "e", "k", "z"}) put(a_, key, "old");
    if (moved_before) REQUIRE_OK(db_->compact());
    Transaction t = db_->transaction();
    c.read(t, a_);
    REQUIRE_OK(t.put(b_, "seen", c.name));
    if (large) {
      const std::string value(1 << 20, 'v');
      for (int i = 0; i < 2; ++i) REQUIRE_OK(t.put(b_, std::to_string(i), value));
    }
    if (c.erased)
      erase(a_, c.changed);
    else
      put(a_, c.changed, "new");
    if (moved_after) REQUIRE_OK(db_->compact());
    const Status s = t.commit();
    CHECK(to_string(s.code()) == to_string(c.conflict ? StatusCode::conflict : StatusCode::ok));
    if (c.conflict) check_conflict(s, "a", c.changed);
    CHECK((stored(b_, "seen") == c.name) == !c.conflict);
  }
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.RowsThatMoveAreNoConflict",
                 "[TransactionTest]") {
  for (int i = 0; i < 100; ++i) put(a_, "k" + std::to_string(100 + i), "v");
  Transaction t = db_->transaction();
  CHECK(read(t, a_, "k150") == "v");
  CHECK(keys_of(t.scan(a_, {.from = "k110", .to = "k120"})).size() == 10);
  CHECK(*t.count(b_) == 0);
  for (int round = 0; round < 3; ++round) {
    put_many(a_);
    for (int i = 0; i < 2000; ++i) put(a_, "other" + std::to_string(i), std::string(500, 'o'));
    REQUIRE_OK(db_->compact());
  }
  REQUIRE_OK(t.put(a_, "k150", "w"));
  REQUIRE_OK(t.commit());
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.ARangeThatIsErasedInPlaceIsAConflict",
                 "[TransactionTest]") {
  options_.max_range_tombstones = 0;
  open();
  a_ = *db_->open_table("a");
  b_ = *db_->open_table("b");
  put_many(a_);
  for (const bool inside : {true, false}) {
    Transaction t = db_->transaction();
    CHECK(read(t, a_, inside ? "~150" : "~250"));
    REQUIRE_OK(t.put(b_, "k", "v"));
    WriteTransaction range = db_->begin();
    REQUIRE_OK(range.erase_range(a_, as_bytes("~1"), as_bytes("~2")));
    REQUIRE_OK(range.commit());
    const Status s = t.commit();
    if (inside)
      check_conflict(s, "a", "~150");
    else
      CHECK_OK(s);
  }
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.ManyReadsAreCheckedTogether",
                 "[TransactionTest]") {
  put_many(a_);
  std::vector<std::string> names;
  for (int i = 0; i < 30'000; ++i) names.push_back("~" + std::to_string(i));  // some not there
  const Rows queries(names);
  for (const char* changed : {"~7", "~25000", "no"})
    for (const bool moved : {false, true}) {
      Transaction t = db_->transaction();
      GetResult got;
      REQUIRE_OK(t.get(a_, queries.column(), &got));
      LowerBoundResult bounds;
      REQUIRE_OK(t.lower_bound(b_, queries.column(), &bounds));
      REQUIRE_OK(t.put(b_, changed, "v"));
      put(a_, changed, moved ? "moved" : "here");
      if (moved) REQUIRE_OK(db_->compact());
      const Status s = t.commit();
      if (changed[0] == '~')
        check_conflict(s, "a", changed);
      else
        CHECK_OK(s);
      erase(a_, "~25000");
    }
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.AnErasedRangeHidesRowsFromReads",
                 "[TransactionTest]") {
  for (const char* key : {"a", "b", "c", "d"}) put(a_, key, "1");
  Transaction t = db_->transaction();
  REQUIRE_OK(t.put(a_, "bb", "2"));
  REQUIRE_OK(t.erase_range(a_, as_bytes("b"), as_bytes("d")));
  REQUIRE_OK(t.put(a_, "c", "3"));
  CHECK(keys_of(t.scan(a_)) == Names{"a", "c", "d"});
  CHECK_FALSE(read(t, a_, "bb"));
  CHECK(read(t, a_, "c") == "3");
  REQUIRE_OK(t.erase_range(a_, as_bytes("c"), std::nullopt));
  CHECK(keys_of(t.scan(a_)) == Names{"a"});
  REQUIRE_OK(t.commit());
  CHECK(*db_->snapshot().count(a_) == 1);
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.MatchesPrefixes", "[TransactionTest]") {
  TableOptions options;
  options.address_bits = 32;
  Table routes = *db_->create_table("routes", options);
  auto prefix = [](const char* t) { return *parse_prefix(t, 32); };
  auto address = [](const char* t) { return *parse_address(t, 32); };
  put(routes, prefix("10.0.0.0/8"), "eight");
  put(routes, prefix("10.1.0.0/16"), "sixteen");
  struct {
    const char* changed;
    bool conflict;
  } changes[] = {{"10.1.0.0/16", true}, {"10.2.0.0/16", false}, {"10.1.2.0/24", true}};
  for (const auto& change : changes) {
    INFO(change.changed);
    Transaction t = db_->transaction();
    auto found = t.match(routes, as_bytes(address("10.1.2.3")));
    REQUIRE_OK(found);
    CHECK(text((*found)->value).substr(0, 7) == "sixteen");
    REQUIRE_OK(t.put(b_, "k", "v"));
    put(routes, prefix(change.changed), "sixteen" + std::string(change.changed));
    CHECK(to_string(t.commit().code()) ==
          to_string(change.conflict ? StatusCode::conflict : StatusCode::ok));
  }
  Transaction t = db_->transaction();
  REQUIRE_OK(t.put(routes, prefix("10.1.2.3/32"), "own"));
  REQUIRE_OK(t.erase(routes, prefix("10.1.2.0/24")));
  const std::string addresses = address("10.1.2.3") + address("10.1.2.4") + address("11.0.0.0");
  MatchResult result;
  REQUIRE_OK(t.match(routes, Column::fixed(addresses.data(), 4, 3), &result));
  CHECK(text(result.value(0)) == "own");
  CHECK(result.lengths[0] == 32);
  CHECK(result.lengths[1] == 16);
  CHECK_FALSE(result.found[2]);
  CHECK(keys_of(t.inside(routes, as_bytes(prefix("10.1.0.0/16")))).size() == 2);
  REQUIRE_OK(t.commit());
  CHECK(*db_->snapshot().count(routes) == 4);
}

// What an address was given may be shorter than what is stored.
TEST_CASE_METHOD(TransactionTest, "TransactionTest.MatchesBesideOwnPrefixes", "[TransactionTest]") {
  TableOptions options;
  options.address_bits = 32;
  auto prefix = [](const char* t) { return *parse_prefix(t, 32); };
  const std::string address = *parse_address("10.1.2.3", 32);
  struct {
    const char *own, *changed;
    bool erases, conflict;
  } changes[] = {
      {"10.0.0.0/8", "0.0.0.0/0", false, false},   {"10.0.0.0/8", "8.0.0.0/5", true, true},
      {"10.0.0.0/8", "8.0.0.0/5", false, true},    {"10.0.0.0/8", "10.0.0.0/7", false, true},
      {"10.0.0.0/8", "10.0.0.0/8", false, true},   {"10.0.0.0/8", "10.1.0.0/16", false, true},
      {"10.0.0.0/8", "0.0.0.0/1", false, false},   {"10.0.0.0/8", "11.0.0.0/8", false, false},
      {"10.1.0.0/16", "10.0.0.0/8", false, false}, {"10.1.0.0/16", "10.1.0.0/24", false, false},
      {"10.1.0.0/16", "10.1.2.0/24", false, true},
  };
  int number = 0;
  for (const auto& change : changes) {
    const bool is_erased = std::string(change.own) == "10.0.0.0/8";
    INFO(change.own << (is_erased ? " erased, " : " put, ") << change.changed);
    Table routes = *db_->create_table("routes" + std::to_string(++number), options);
    for (const char* known : {"0.0.0.0/0", "8.0.0.0/5", "10.0.0.0/8"})
      put(routes, prefix(known), known);
    Transaction t = db_->transaction();
    if (is_erased)
      REQUIRE_OK(t.erase(routes, prefix(change.own)));
    else
      REQUIRE_OK(t.put(routes, prefix(change.own), "own"));
    // One address, or a batch of them.
    MatchResult result;
    if (number % 2 == 0) {
      REQUIRE_OK(t.match(routes, Column::fixed(address.data(), 4, 1), &result));
      CHECK(text(result.value(0)) == (is_erased ? "8.0.0.0/5" : "own"));
    } else {
      auto found = t.match(routes, as_bytes(address));
      REQUIRE_OK(found);
      CHECK(text((*found)->value) == (is_erased ? "8.0.0.0/5" : "own"));
    }
    REQUIRE_OK(t.put(b_, "k", "v"));
    WriteTransaction other = db_->begin();
    if (change.erases)
      REQUIRE_OK(other.erase(routes, prefix(change.changed)));
    else
      REQUIRE_OK(other.put(routes, prefix(change.changed), "other"));
    REQUIRE_OK(other.commit());
    CHECK(to_string(t.commit().code()) ==
          to_string(change.conflict ? StatusCode::conflict : StatusCode::ok));
  }
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.RetryGoesOnUntilNobodyInterferes",
                 "[TransactionTest]") {
  put(a_, "n", "0");
  int calls = 0;
  REQUIRE_OK(retry(*db_, [&](Transaction& t) -> Status {
    const int n = std::stoi(*read(t, a_, "n"));
    if (++calls < 4) put(a_, "n", std::to_string(n + 10));
    return t.put(a_, "n", std::to_string(n + 1));
  }));
  CHECK(calls == 4);
  CHECK(stored(a_, "n") == "31");

  calls = 0;
  auto hopeless = [&](Transaction& t) -> Status {
    ++calls;
    CHECK(read(t, a_, "n"));
    put(a_, "n", "0");
    return t.put(a_, "m", "never");
  };
  check_conflict(retry(*db_, hopeless, 5), "a", "n");
  CHECK(calls == 5);
  CHECK(retry(*db_, hopeless, 0).code() == StatusCode::invalid_argument);
  CHECK_FALSE(stored(a_, "m"));

  auto gives_up = [&](Transaction& t) -> Status {
    REQUIRE_OK(t.put(a_, "m", "never"));
    return Status(StatusCode::not_found, "no such account");
  };
  CHECK(retry(*db_, gives_up).message() == "no such account");
  auto ends = [&](Transaction& t) -> Status {
    t.abort();
    return Status();
  };
  CHECK_OK(retry(*db_, ends));
  CHECK_FALSE(stored(a_, "m"));
}

TEST_CASE_METHOD(TransactionTest, "TransactionTest.ThreadsCountTogether", "[TransactionTest]") {
  put(a_, "n", "0");
  constexpr int threads = 4, times = 100;
  TestThreads all;
  for (int t = 0; t < threads; ++t)
    all.start([&] {
      for (int i = 0; i < times; ++i)
        REQUIRE_OK(retry(
            *db_,
            [&](Transaction& one) -> Status {
              auto value = one.get(a_, "n");
              if (!value.ok()) return value.status();
              return one.put(a_, "n", std::to_string(std::stoi(text(**value)) + 1));
            },
            100'000));
    });
  all.join();
  CHECK(stored(a_, "n") == std::to_string(threads * times));
}

// What comes between the look ahead of a commit, which holds nothing up, and its turn: commits that
// are there by then, and those that are carried out together with it.
TEST_CASE_METHOD(TransactionTest, "ReadCheckTest.RowsThatComeBehindALookAheadAreConflicts",
                 "[ReadCheckTest]") {
  put(a_, "k", "1");
  auto now = [&] {
    Moment moment;
    moment.version = SnapshotVersion::of(db_->snapshot());
    moment.commit = moment.version->memtable->visible();
    return moment;
  };
  const std::shared_ptr<const TableRecord> record = TableParts::record(a_);
  for (int read_keys : {3, 100}) {  // of many the new rows are looked for among the keys
    ReadSet reads;
    TableReads& of_a = reads.of(record);
    of_a.add_interval(as_bytes("d"), as_bytes("m"));
    of_a.add_interval(as_bytes("p"), std::nullopt);
    for (int i = 0; i < read_keys; ++i) of_a.add_key(as_bytes("b" + std::to_string(i)));
    for (const auto& [key, is_read] : std::map<std::string, bool>{{"a", false},
                                                                  {"b2", true},
                                                                  {"b200", false},
                                                                  {"c", false},
                                                                  {"d", true},
                                                                  {"lll", true},
                                                                  {"m", false},
                                                                  {"o", false},
                                                                  {"p", true},
                                                                  {"z", true}}) {
      INFO(key << ", " << read_keys << " keys were read");
      ReadCheck check(reads, now());
      REQUIRE_OK(check.look_ahead(now));
      const Rows one({key});
      MemtableRows rows;
      rows.add(&record, one.column(), one.column(), nullptr);
      GroupWrites group;
      group.add(rows);
      const Status beside = check.check_group(group);
      put(b_, "d", "2");
      REQUIRE_OK(check.check(now().version));
      put(a_, key, "2");
      const Status before = check.check(now().version);
      CHECK((beside.ok() && before.ok()) == !is_read);
      if (!is_read) continue;
      check_conflict(beside, "a", key);
      check_conflict(before, "a", key);
    }
  }
}

}  // namespace
}  // namespace stride::test
