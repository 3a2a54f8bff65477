// Memory runs out: every allocation of a call fails in turn, alone or with all that follow. The
// call must say so, nothing may hang, and what it reports must be what is there, now and after
// reopening.
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>

#include "engine/dedup_table.h"
#include "engine/monitoring/monitor.h"
#include "engine/prefixes.h"
#include "storage/no_throw.h"
#include "tests/engine/write/allocation_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/random_tables.h"

namespace stride::test {
namespace {

Status check(bool right) {
  return right ? Status() : Status(StatusCode::corruption, "a wrong answer");
}

// A table that could not be renamed has its name, and what is known of it, whatever else the
// transaction does.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.RenameTable", "[AllocationTest]") {
  const std::string names[] = {"rows", "lines"};
  auto notes = db_->create_table(".stride");
  REQUIRE_OK(notes);
  for (const char* kind : {"table:", "load:", "restore:"}) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(*notes, kind + names[0], kind));
    REQUIRE_OK(t.commit());
  }
  for (int64_t n = 0;; ++n) {
    INFO("allocation " + std::to_string(n));
    const Table rows = table(names[0]);
    WriteTransaction t = db_->begin();
    Status s;
    const bool failed = fail_allocation(n, [&] { s = t.rename_table(rows, names[1]); });
    if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
    REQUIRE_OK(t.commit());
    const std::string& name = names[s.ok() ? 1 : 0];
    CHECK(table(name).id() == rows.id());
    for (const std::string kind : {"table:", "load:", "restore:"}) {
      auto value = db_->snapshot().get(*notes, kind + name);
      REQUIRE_OK(value);
      REQUIRE(value->has_value());
      CHECK(as_text(**value) == kind);
    }
    if (s.ok()) REQUIRE_OK(db_->rename_table(names[1], names[0]));
    if (!failed) break;
  }
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.OpenDedupTable", "[AllocationTest]") {
  sweep_read([&] {
    auto opened = DedupTable::open(*db_, "vectors", {.words = 2, .compressed = true, .threads = 1});
    return opened.status();
  });
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.Commit", "[AllocationTest]") {
  Table rows = table("rows");
  int round = 0;
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    rows = table("rows");
    std::string key = "new" + std::to_string(round++ % 7), value(300, 'x');
    (*after)["rows"][key] = value;
    left = armed;
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.put(rows, key, value));
    return t.commit();
  });
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.CommitWithAllKindsOfChanges", "[AllocationTest]") {
  int round = 0;
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    Table rows = table("rows"), numbers = table("numbers"), prefixes = table("prefixes");
    Model& model = (*after)["rows"];
    std::string key = "new" + std::to_string(round % 7), absent = "a" + std::to_string(round % 5);
    std::string prefix = *parse_prefix("10.9." + std::to_string(round % 9) + ".0/24", 32);
    ++round;
    model.erase(model.lower_bound("key2"), model.lower_bound("key3"));
    model[key] = "x";
    model.emplace(absent, "y");
    (*after)["prefixes"][prefix] = "q";
    int64_t sum = 0;
    std::memcpy(&sum, (*after)["numbers"]["n1"].data(), sizeof sum);
    sum += 5;
    (*after)["numbers"]["n1"] = std::string(reinterpret_cast<const char*>(&sum), sizeof sum);
    Rows absent_keys({absent}), absent_values({"y"});
    left = armed;
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.erase_range(rows, as_bytes("key2"), as_bytes("key3")));
    STRIDE_TRY(t.put(rows, key, "x"));
    STRIDE_TRY(t.put_if_absent(rows, absent_keys.column(), absent_values.column()));
    STRIDE_TRY(t.accumulate(numbers, "n1", 5));
    STRIDE_TRY(t.put(prefixes, prefix, "q"));
    return t.commit(round % 2 ? Durability::sync : Durability::none);
  });
}

// Rows that are many enough to be added up without a hash table.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.ManySums", "[AllocationTest]") {
  Rows keys;
  for (int i = 0; i < 6000; ++i) keys.add("m" + std::to_string(i % 12));
  const std::vector<int64_t> ones(6000, 1);
  int round = 0;
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    Table numbers = table("numbers");
    for (int i = 0; i < 12; ++i) {
      std::string& value = (*after)["numbers"]["m" + std::to_string(i)];
      int64_t sum = 500;
      if (!value.empty()) sum += *reinterpret_cast<const int64_t*>(value.data());
      value.assign(reinterpret_cast<const char*>(&sum), sizeof sum);
    }
    left = armed;
    WriteTransaction t = db_->begin();
    const ValueColumn deltas = Column::fixed(ones.data(), sizeof(int64_t), ones.size());
    STRIDE_TRY(++round % 2 ? t.accumulate(numbers, keys.column(), deltas)
                           : t.accumulate_view(numbers, keys.column(), deltas));
    return t.commit();
  });
}

// Some pieces, which are written in the background.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.LargeCommit", "[AllocationTest]") {
  std::string large(5 << 20, 'l');
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    Table rows = table("rows");
    (*after)["rows"]["large"] = large;
    left = armed;
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.put(rows, "large", large));
    return t.commit(Durability::none);
  });
}

// What a call that fails has staged before it failed is not committed by the next one.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.StagingIsWholeOrNotAtAll", "[AllocationTest]") {
  Rows keys, values;
  for (int i = 0; i < 100'000; ++i) {
    keys.add("s" + std::to_string(i));
    values.add("v");
  }
  for (int64_t n = 0;; ++n) {
    INFO("allocation " + std::to_string(n));
    open();
    Table rows = table("rows");
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(rows, "first", "1"));
    expected_["rows"]["first"] = "1";
    Status s, absent;
    bool failed = fail_allocation(n, [&] { s = t.put(rows, keys.column(), values.column()); });
    if (!failed) break;
    failed =
        fail_allocation(n, [&] { absent = t.put_if_absent(rows, keys.column(), values.column()); });
    REQUIRE(s.code() == StatusCode::resource_exhausted);
    REQUIRE(absent.ok() == !failed);
    if (absent.ok()) continue;
    REQUIRE_OK(t.commit());
    expect_content();
  }
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.CreateAndDropTables", "[AllocationTest]") {
  int round = 0;
  auto name = [&] { return "table" + std::to_string(round); };
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    while (expected_.count(name())) ++round;
    std::string fresh = name();
    (*after)[fresh];
    left = armed;
    return db_->create_table(fresh).status();
  });
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    std::string fresh = "with rows " + std::to_string(round++);
    (*after)[fresh]["key"] = "value";
    left = armed;
    WriteTransaction t = db_->begin();
    auto created = t.create_table(fresh);
    if (!created.ok()) return created.status();
    STRIDE_TRY(t.put(*created, "key", "value"));
    return t.commit();
  });
  sweep_change([&](Tables* after) {
    int64_t armed = left.exchange(never);
    std::string dropped = expected_.begin()->first;
    after->erase(dropped);
    left = armed;
    return db_->drop_table(dropped);
  });
}

// What is known of its columns goes afterwards, in a commit of its own that may fail.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.DropATableWithColumns", "[AllocationTest]") {
  const Schema schema = *Schema::parse("id u64 key, name string");
  bool failed = true;
  for (int64_t n = 0; failed; ++n) {
    INFO("allocation " + std::to_string(n));
    if (!db_->open_table("typed").ok()) REQUIRE_OK(db_->create_table("typed", {.schema = schema}));
    Status s;
    failed = fail_allocation(n, [&] { s = db_->drop_table("typed"); });
    if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
    for (int reopened = 0; reopened < 2; ++reopened) {
      auto there = db_->open_table("typed");
      if (s.ok()) {
        REQUIRE(there.status().code() == StatusCode::not_found);
      } else {
        REQUIRE_OK(there);
        REQUIRE(there->schema() == schema);
      }
      if (n % 16 != 15) break;
      open();
    }
  }
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.Compact", "[AllocationTest]") {
  sweep_change([&](Tables*) { return db_->compact(); });
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.Sync", "[AllocationTest]") {
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table("rows"), "k", "v"));
  REQUIRE_OK(t.commit(Durability::none));
  expected_["rows"]["k"] = "v";
  sweep_change([&](Tables*) { return db_->sync(); });
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.OpenVerifyAndClose", "[AllocationTest]") {
  for (int64_t n = 0;; n = next_after(n)) {
    INFO("allocation " + std::to_string(n));
    Status s;
    bool close_failed = fail_allocation(n, [&] { s = db_->close(); });
    db_.reset();
    bool failed = fail_allocation(n, [&] {
      auto opened = Database::open(directory_.path(), {.threads = 2});
      s = opened.status();
      if (opened.ok()) s = (*opened)->verify();
    });
    if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
    open();
    expect_content();
    if (!failed && !close_failed) break;
  }
}

// After a process was killed, what it had not synced is read when the database is next opened. It
// stays, too, where that cannot be done for want of memory or of descriptors.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.OpenAfterAKill", "[AllocationTest]") {
  const std::string copy = directory_.path() + "-copy";
  auto kill = [&] {  // what is on the disk now is what a killed process leaves
    std::filesystem::remove_all(copy);
    std::filesystem::copy(directory_.path(), copy);
  };
  auto expect_whole = [&] {
    auto again = Database::open(copy, {.threads = 2});
    REQUIRE_OK(again.status());
    REQUIRE(read_all(**again) == expected_);
  };
  for (int64_t n = 0;; n = next_after(n)) {
    INFO("allocation " + std::to_string(n));
    kill();
    Status s;
    bool failed = fail_allocation(n, [&] { s = Database::open(copy, {.threads = 2}).status(); });
    if (!s.ok()) REQUIRE_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
    expect_whole();
    if (!failed) break;
  }
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  for (rlim_t limit = 4; limit < 40; ++limit) {
    INFO(std::to_string(limit) + " descriptors");
    kill();
    struct rlimit few = {limit, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    Status s = Database::open(copy, {.threads = 2}).status();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    if (!s.ok()) CHECK_MESSAGE(s.code() == StatusCode::resource_exhausted, s.to_string());
    expect_whole();
  }
  std::filesystem::remove_all(copy);
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.Reads", "[AllocationTest]") {
  Table rows = table("rows");
  Snapshot snapshot = db_->snapshot();
  const Model& model = expected_["rows"];
  Rows queries({"key1", "nothing", "key39"});
  sweep_read([&] {
    auto one = snapshot.get(rows, "key39");
    return one.ok() ? check(one->has_value()) : one.status();
  });
  sweep_read([&] {
    FindResult found;
    STRIDE_TRY(snapshot.find(rows, queries.column(), &found));
    return check(found.found[0] && !found.found[1] && found.found[2]);
  });
  sweep_read([&] {
    GetResult got;
    STRIDE_TRY(snapshot.get(rows, queries.column(), &got));
    return check(got.found[0] && !got.found[1] && got.found[2]);
  });
  sweep_read([&] {
    LowerBoundResult bounds;
    STRIDE_TRY(snapshot.lower_bound(rows, queries.column(), &bounds));
    return check(bounds.found[0] && as_text(bounds.keys[2]) == "key39");
  });
  for (bool reverse : {false, true}) {
    sweep_read([&] {
      auto scan = snapshot.scan(rows, {.reverse = reverse, .batch_rows = 10});
      if (!scan.ok()) return scan.status();
      ScanBatch batch;
      uint64_t seen = 0;
      while (scan->next(&batch)) seen += batch.keys.size;
      STRIDE_TRY(scan->status());
      return check(seen == model.size());
    });
  }
  sweep_read([&] {
    auto it = snapshot.iterate(rows, {.prefix = "key3"});
    if (!it.ok()) return it.status();
    for (; it->valid(); it->next()) {
    }
    return it->status();
  });
  sweep_read([&] {
    auto count = snapshot.count(rows);
    return count.ok() ? check(*count == model.size()) : count.status();
  });
}

// The first batch of a snapshot makes segments of the memtable's rows; one that fails is followed
// by others that find them.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.RowsInTheMemtableAlone", "[AllocationTest]") {
  auto fresh = db_->create_table("fresh", {});
  REQUIRE_OK(fresh);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(*fresh, "a", "1"));
  REQUIRE_OK(t.put(*fresh, "b", "2"));
  REQUIRE_OK(t.commit(Durability::none));
  Snapshot snapshot = db_->snapshot();
  Rows queries({"a", "b", "c"});
  sweep_read([&] {
    GetResult got;
    STRIDE_TRY(snapshot.get(*fresh, queries.column(), &got));
    return check(got.found[0] && got.found[1] && !got.found[2]);
  });
}

// A table whose creation has failed is not there after the commit, and none is there without its
// schema.
TEST_CASE_METHOD(AllocationTest, "AllocationTest.TablesWithASchema", "[AllocationTest]") {
  const Schema schema = *Schema::parse("id u64 key, name string, score f64?");
  const TableOptions options = {.schema = schema};
  for (int64_t n = 0;; ++n) {
    const std::string name = "with_schema_" + std::to_string(n);
    WriteTransaction t = db_->begin();
    Status created;
    const bool failed =
        fail_allocation(n, [&] { created = t.create_table(name, options).status(); });
    REQUIRE_OK(t.commit());
    auto table = db_->open_table(name);
    CHECK(table.ok() == created.ok());
    if (table.ok()) CHECK(table->schema() == schema);
    if (!failed) break;
  }
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.ReadsOfPrefixesAndTables", "[AllocationTest]") {
  Table rows = table("rows"), prefixes = table("prefixes");
  Snapshot snapshot = db_->snapshot();
  const char address[4] = {10, 1, 2, 3};
  Bytes bytes = as_bytes(std::string_view(address, 4));
  sweep_read([&] {
    auto match = snapshot.match(prefixes, bytes);
    return match.ok() ? check(match->has_value() && (*match)->length == 16) : match.status();
  });
  sweep_read([&] {
    auto all = snapshot.match_all(prefixes, bytes);
    return all.ok() ? check(all->size() == 1) : all.status();
  });
  sweep_read([&] { return db_->segments(rows).status(); });
  sweep_read([&] { return db_->open_table("numbers").status(); });
  sweep_read([&] {
    auto missing = db_->open_table("no such table");
    return missing.status().code() == StatusCode::not_found ? Status() : missing.status();
  });
  sweep_read([&] { return db_->verify(); });
}

TEST_CASE_METHOD(AllocationTest, "AllocationTest.EventsAreToldOrNot", "[AllocationTest]") {
  auto log = std::make_shared<LogFile>(FileSystem::posix(), directory_.path());
  for (int64_t n = 0, failed = 1; failed; ++n)
    failed = fail_allocation(n, [&] {
      Status ignored = no_throw([&] {
        Monitor monitor({.logger = log});
        WatchedTask(monitor, /*flush=*/false).begin({.table = std::string(40, 't')});
        monitor.end(Status());
        return Status();
      });
    });
}

}  // namespace
}  // namespace stride::test
