// Tables that get other names: rows, schemas and handles stay, whatever happens meanwhile.
#include <memory>
#include <string>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/random_tables.h"

namespace stride::test {
namespace {

class RenameTableTest {
 protected:
  RenameTableTest() { open(); }
  void open(bool read_only = false) {
    db_.reset();
    auto opened = Database::open("/db", {.read_only = read_only, .file_system = &fs_});
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
  }
  Table table(const std::string& name) {
    auto table = db_->open_table(name);
    REQUIRE_OK(table);
    return *table;
  }
  void put(const Table& table, const std::string& key, const std::string& value) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table, key, value));
    REQUIRE_OK(t.commit());
  }
  Tables all() {
    auto found = read_all(*db_);
    REQUIRE(found.has_value());
    found->erase(".stride");
    return *found;
  }

  MemoryFileSystem fs_;
  std::unique_ptr<Database> db_;
};

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.IsThereAfterReopening", "[RenameTableTest]") {
  const Schema schema = *Schema::parse("id u64 key, name string");
  auto users = db_->create_table("users", {.schema = schema});
  REQUIRE_OK(users);
  put(*users, "12345678", "Ada");
  REQUIRE_OK(db_->compact());        // a segment
  put(*users, "87654321", "Grace");  // in the log alone
  REQUIRE_OK(db_->rename_table("users", "customers"));
  CHECK(db_->open_table("users").status().code() == StatusCode::not_found);
  put(*users, "11111111", "Edsger");  // the handle goes on
  CHECK(users->name() == "users");
  const Tables rows = {
      {"customers", {{"11111111", "Edsger"}, {"12345678", "Ada"}, {"87654321", "Grace"}}}};
  CHECK(all() == rows);
  CHECK(table("customers").id() == users->id());
  CHECK(table("customers").schema() == schema);
  for (bool read_only : {true, false}) {
    open(read_only);
    CHECK(all() == rows);
    CHECK(table("customers").schema() == schema);
    CHECK(table("customers").key_width() == 8);
  }
  REQUIRE_OK(db_->verify());
  REQUIRE_OK(db_->compact());
  open();
  CHECK(all() == rows);
}

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.LeavesSnapshotsAsTheyAre", "[RenameTableTest]") {
  Table t = *db_->create_table("t");
  put(t, "a", "1");
  Snapshot before = db_->snapshot();
  REQUIRE_OK(db_->rename_table("t", "u"));
  Table again = *db_->create_table("t");
  put(again, "b", "2");
  put(table("u"), "c", "3");
  CHECK(*before.count(t) == 1);
  CHECK(*before.count(table("u")) == 1);
  CHECK(before.count(again).status().code() == StatusCode::not_found);
  CHECK(all() == Tables{{"t", {{"b", "2"}}}, {"u", {{"a", "1"}, {"c", "3"}}}});
}

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.SnapshotsFindTablesByTheNamesOfTheirTime",
                 "[RenameTableTest]") {
  const Schema schema = *Schema::parse("id u64 key, name string");
  put(*db_->create_table("t", {.schema = schema}), "12345678", "old");
  const bool in_segment = GENERATE(false, true);
  if (in_segment) REQUIRE_OK(db_->compact());
  Snapshot before = db_->snapshot();
  REQUIRE_OK(db_->rename_table("t", "u"));
  Snapshot between = db_->snapshot();
  put(*db_->create_table("t"), "b", "new");
  REQUIRE_OK(db_->drop_table("u"));
  const auto expect_old = [&](const Snapshot& snapshot, const char* name) {
    auto found = snapshot.open_table(name);
    REQUIRE_OK(found);
    CHECK(found->schema() == schema);
    CHECK(text(**snapshot.get(*found, "12345678")) == "old");
  };
  expect_old(before, "t");
  expect_old(between, "u");
  CHECK(before.open_table("u").status().code() == StatusCode::not_found);
  CHECK(between.open_table("t").status().code() == StatusCode::not_found);
  Snapshot now = db_->snapshot();
  CHECK(text(**now.get(*now.open_table("t"), "b")) == "new");
  CHECK(now.open_table("u").status().code() == StatusCode::not_found);
  // What the snapshot knows needs no database that is open.
  REQUIRE_OK(db_->close());
  expect_old(before, "t");
}

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.TheTableOfSchemasIsNotDropped",
                 "[RenameTableTest]") {
  const Schema schema = *Schema::parse("id u64 key, name string");
  REQUIRE_OK(db_->create_table("t", {.schema = schema}));
  const Status s = db_->drop_table(".stride");
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK_FALSE(s.remedy().empty());
  open();
  CHECK(table("t").schema() == schema);
}

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.AnotherTableTakesThePlaceInOneCommit",
                 "[RenameTableTest]") {
  Table t = *db_->create_table("t"), next = *db_->create_table("next");
  put(t, "a", "1");
  put(next, "b", "2");
  {
    WriteTransaction w = db_->begin();
    REQUIRE_OK(w.rename_table(t, "old"));
    REQUIRE_OK(w.rename_table(next, "t"));
    auto made = w.open_or_create_table("next");
    REQUIRE_OK(made);
    CHECK(made->id() != next.id());
    REQUIRE_OK(w.put(*made, "c", "3"));
    CHECK(w.open_or_create_table("t")->id() == next.id());
    CHECK(w.open_or_create_table("old")->id() == t.id());
    CHECK(w.create_table("old").status().code() == StatusCode::already_exists);
    CHECK(all() == Tables{{"next", {{"b", "2"}}}, {"t", {{"a", "1"}}}});  // not yet
    REQUIRE_OK(w.commit());
  }
  const Tables rows = {{"next", {{"c", "3"}}}, {"old", {{"a", "1"}}}, {"t", {{"b", "2"}}}};
  CHECK(all() == rows);
  open();
  CHECK(all() == rows);
  WriteTransaction aborted = db_->begin();
  REQUIRE_OK(aborted.rename_table(table("old"), "older"));
  aborted.abort();
  CHECK(all() == rows);
}

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.RefusesWhatCannotBe", "[RenameTableTest]") {
  Table t = *db_->create_table("t"), u = *db_->create_table("u");
  REQUIRE_OK(db_->create_table("s", {.schema = *Schema::parse("x i8")}));
  auto code = [&](const std::string& name, const std::string& new_name) {
    return db_->rename_table(name, new_name).code();
  };
  CHECK(code("none", "v") == StatusCode::not_found);
  CHECK(code("t", "u") == StatusCode::already_exists);
  CHECK(code("t", "t") == StatusCode::already_exists);
  CHECK(code("t", "") == StatusCode::invalid_argument);
  CHECK(code("t", std::string(256, 'n')) == StatusCode::invalid_argument);
  CHECK(code("t", std::string("a\0b", 3)) == StatusCode::invalid_argument);
  CHECK(code("t", ".stride") == StatusCode::invalid_argument);
  CHECK(code(".stride", "v") == StatusCode::invalid_argument);
  WriteTransaction w = db_->begin();
  auto made = w.create_table("made");
  REQUIRE_OK(made);
  CHECK(w.rename_table(*made, "v").code() == StatusCode::not_found);
  CHECK(w.rename_table(t, "made").code() == StatusCode::already_exists);
  REQUIRE_OK(w.rename_table(t, "v"));
  CHECK(w.rename_table(t, "w").code() == StatusCode::already_exists);
  CHECK(w.rename_table(u, "v").code() == StatusCode::already_exists);
  CHECK(w.rename_table(Table(), "w").code() == StatusCode::invalid_argument);
  REQUIRE_OK(w.commit());
  CHECK(w.rename_table(u, "w").code() == StatusCode::closed);
  open(/*read_only=*/true);
  CHECK(code("u", "w") == StatusCode::read_only);
}

// Whoever commits first has the name.
TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.TheFirstCommitHasTheName", "[RenameTableTest]") {
  Table t = *db_->create_table("t"), u = *db_->create_table("u");
  WriteTransaction first = db_->begin(), second = db_->begin(), third = db_->begin(),
                   fourth = db_->begin(), fifth = db_->begin();
  REQUIRE_OK(first.rename_table(t, "v"));
  REQUIRE_OK(second.rename_table(u, "v"));
  REQUIRE_OK(third.rename_table(t, "w"));
  REQUIRE_OK(fourth.create_table("v"));
  REQUIRE_OK(fifth.put(t, "a", "1"));
  REQUIRE_OK(first.commit());
  CHECK(second.commit().code() == StatusCode::already_exists);
  const Status renamed = third.commit();
  CHECK(renamed.code() == StatusCode::not_found);
  CHECK(renamed.message() == "table 't' has another name by now, 'v'");
  CHECK(fourth.commit().code() == StatusCode::already_exists);
  REQUIRE_OK(fifth.commit());
  WriteTransaction late = db_->begin();
  REQUIRE_OK(late.rename_table(u, "w"));
  REQUIRE_OK(db_->drop_table("u"));
  CHECK(late.commit().code() == StatusCode::not_found);
  CHECK(all() == Tables{{"v", {{"a", "1"}}}});
}

TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.RowsOfTheSameCommitGoAlong",
                 "[RenameTableTest]") {
  Table t = *db_->create_table("t");
  auto nets = db_->create_table("nets", {.address_bits = 32});
  REQUIRE_OK(nets);
  WriteTransaction w = db_->begin();
  REQUIRE_OK(w.put(t, "a", "1"));
  REQUIRE_OK(w.rename_table(t, "u"));
  REQUIRE_OK(w.put(t, "b", "2"));
  REQUIRE_OK(w.erase(t, "a"));
  REQUIRE_OK(w.put(*nets, std::string("\x0A\0\0\0\x08", 5), "ten"));
  REQUIRE_OK(w.rename_table(*nets, "routes"));
  REQUIRE_OK(w.commit(CommitOptions{.refuse_equal_keys = false}));
  for (int i = 0; i < 2; ++i) {
    CHECK(all()["u"] == Model{{"b", "2"}});
    const std::byte address[] = {std::byte{10}, std::byte{1}, std::byte{2}, std::byte{3}};
    MatchResult found;
    REQUIRE_OK(db_->snapshot().match(table("routes"), Column::fixed(address, 4, 1), &found));
    CHECK(text(found.value(0)) == "ten");
    open();
  }
}

// What `.stride` keeps by names goes along, and nothing is left behind.
TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.NotesGoAlong", "[RenameTableTest]") {
  Table t = *db_->create_table("t"), of_colons = *db_->create_table("a:t"),
        seven = *db_->create_table("7"), notes = *db_->create_table(".stride");
  put(notes, "table:t", "one");
  put(notes, "load:t", "two");
  put(notes, "table:a:t", "three");
  put(notes, "load:u", "stale");
  put(notes, "restore:u", "stale");
  put(notes, "schema:7", "x i8");  // of a table's number
  REQUIRE_OK(db_->rename_table("t", "u"));
  REQUIRE_OK(db_->rename_table("7", "8"));
  CHECK((*read_all(*db_))[".stride"] ==
        Model{{"load:u", "two"}, {"schema:7", "x i8"}, {"table:a:t", "three"}, {"table:u", "one"}});
}

// A manifest that is written anew says nothing of former names.
TEST_CASE_METHOD(RenameTableTest, "RenameTableTest.IsKeptWhereTheManifestIsWrittenAnew",
                 "[RenameTableTest]") {
  Table t = *db_->create_table("t");
  put(t, "a", "1");
  const std::string long_name(255, 'n');
  for (int i = 0; i < 4500; ++i)
    REQUIRE_OK(db_->rename_table(i % 2 ? long_name : "t", i % 2 ? "t" : long_name));
  CHECK(db_->size_bytes() < (2 << 20));
  open();
  CHECK(all() == Tables{{"t", {{"a", "1"}}}});
}

}  // namespace
}  // namespace stride::test
