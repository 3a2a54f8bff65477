// Erasing ranges of keys, beside a model that does so one change after the other.
#include <sys/resource.h>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

class EraseRangeTest {
 protected:
  EraseRangeTest() : db_(std::move(*Database::open(directory_.file("db")))) {}

  void put(const Table& table, const std::vector<std::string>& keys) {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table, Rows(keys).column(), Rows(keys).column()));
    REQUIRE_OK(t.commit());
  }
  std::vector<std::string> keys_of(const Table& table) {
    std::vector<std::string> keys;
    auto it = db_->snapshot().iterate(table);
    for (; it->valid(); it->next()) keys.push_back(text(it->key()));
    return keys;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Database> db_;
};

using Keys = std::vector<std::string>;

TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.BoundsAreHalfOpenAndMayBeMissing",
                 "[EraseRangeTest]") {
  Table table = *db_->create_table("t");
  auto erase = [&](std::optional<Bytes> from, std::optional<Bytes> to) {
    put(table, {"", "a", "b", "b\xFF", "c", "\xFF\xFF"});
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.erase_range(table, from, to));
    CHECK(t.staged_rows() == 1u);
    REQUIRE_OK(t.commit());
  };
  erase(as_bytes("a"), as_bytes("c"));
  CHECK(keys_of(table) == (Keys{"", "c", "\xFF\xFF"}));
  erase(std::nullopt, as_bytes("b"));
  CHECK(keys_of(table) == (Keys{"b", "b\xFF", "c", "\xFF\xFF"}));
  erase(as_bytes("b"), std::nullopt);
  CHECK(keys_of(table) == (Keys{"", "a"}));
  erase(as_bytes("c"), as_bytes("a"));  // nothing lies in between
  erase(as_bytes("b"), as_bytes("b"));
  CHECK(keys_of(table).size() == 6u);
  erase(std::nullopt, std::nullopt);
  CHECK(keys_of(table) == Keys{});
}

// Of two runs that overlap, each of one segment; rows are erased in place, or by tombstones.
TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.BoundsMayBeTheFirstAndLastKeysOfSegments",
                 "[EraseRangeTest]") {
  const Keys bounds = {"a", "b", "c", "d", "e", "f", "g"};
  Options options;
  options.threads = 1;
  options.memtable_bytes = 0;  // each commit makes a segment
  options.background_work = false;
  for (uint64_t max_tombstones : {0, 4096})
    for (const std::string& from : bounds)
      for (const std::string& to : bounds) {
        MemoryFileSystem fs{{.crashable = false}};
        options.file_system = &fs;
        options.max_range_tombstones = max_tombstones;
        db_ = std::move(*Database::open("/db", options));
        Table table = *db_->create_table("t");
        put(table, {"b", "d", "f"});
        put(table, {"c", "d", "e"});
        WriteTransaction t = db_->begin();
        REQUIRE_OK(t.erase_range(table, as_bytes(from), as_bytes(to)));
        REQUIRE_OK(t.commit());
        Keys expected = {"b", "c", "d", "e", "f"};
        std::erase_if(expected, [&](const std::string& key) { return key >= from && key < to; });
        CHECK_MESSAGE(keys_of(table) == expected,
                      from << " to " << to << ", at most " << max_tombstones << " tombstones");
        db_.reset();
      }
}

TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.ErasesWhatWasPutBeforeAndNotWhatComesAfter",
                 "[EraseRangeTest]") {
  Table table = *db_->create_table("t");
  put(table, {"a", "b", "c"});
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table, "b", "staged before"));
  REQUIRE_OK(t.put(table, "b2", "staged before"));
  REQUIRE_OK(t.erase_range(table, as_bytes("b"), as_bytes("c")));
  REQUIRE_OK(t.put(table, "b3", "staged after"));
  REQUIRE_OK(t.commit());
  CHECK(keys_of(table) == (Keys{"a", "b3", "c"}));
}

// The range means the table at the commit, not at the call.
TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.ErasesWhatOthersCommittedMeanwhile",
                 "[EraseRangeTest]") {
  Table table = *db_->create_table("t");
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.erase_range(table, as_bytes("a"), as_bytes("c")));
  put(table, {"a", "b", "c"});
  REQUIRE_OK(t.commit());
  CHECK(keys_of(table) == (Keys{"c"}));
}

TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.ColumnsOfRanges", "[EraseRangeTest]") {
  Table table = *db_->create_table("t");
  put(table, {"a", "b", "c", "d", "e", "f"});
  WriteTransaction t = db_->begin();
  Rows from({"d", "a", "a5"}), to({"f", "b", "c"});
  REQUIRE_OK(t.erase_ranges(table, from.column(), to.column()));
  REQUIRE_OK(t.erase_ranges(table, Column(), Column()));
  CHECK(t.staged_rows() == 3u);
  CHECK(t.erase_ranges(table, from.column(), Rows({"f"}).column()).code() ==
        StatusCode::invalid_argument);
  uint64_t descending[] = {2, 1};
  CHECK(t.erase_ranges(table, Column::variable("ab", descending, 1), Rows({"f"}).column()).code() ==
        StatusCode::invalid_argument);
  CHECK(t.erase_range(Table(), std::nullopt, std::nullopt).code() == StatusCode::invalid_argument);
  REQUIRE_OK(t.commit());
  CHECK(keys_of(table) == (Keys{"c", "f"}));
}

TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.NothingThereAndALargeTable", "[EraseRangeTest]") {
  Table table = *db_->create_table("t", {.key_width = 4});
  WriteTransaction empty = db_->begin();
  REQUIRE_OK(empty.erase_range(table, std::nullopt, std::nullopt));
  REQUIRE_OK(empty.commit());
  constexpr uint32_t n = 200'000;
  std::string keys;
  for (uint32_t i = 0; i < n; ++i)
    for (int shift = 24; shift >= 0; shift -= 8) keys += static_cast<char>(i >> shift);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.put(table, Column::fixed(keys.data(), 4, n), Column::fixed(keys.data(), 4, n)));
  REQUIRE_OK(t.commit());
  WriteTransaction most = db_->begin();
  // A bound need not have the width of the keys.
  REQUIRE_OK(most.erase_range(table, as_bytes(std::string_view("\0\0\1", 3)), std::nullopt));
  REQUIRE_OK(most.commit());
  CHECK(*db_->snapshot().count(table) == 256u);
  REQUIRE_OK(db_->compact());
  CHECK(*db_->snapshot().count(table) == 256u);
}

// Puts, erases and ranges in any order, several commits, and reopening.
TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.RandomChangesAgreeWithAModel",
                 "[EraseRangeTest]") {
  std::mt19937_64 random(seed());
  for (uint32_t width : {0u, 3u}) {
    RandomRows rows({"few keys", width, 4, 4, 10}, random);
    Table table = *db_->create_table("t" + std::to_string(width), {.key_width = width});
    Model model;
    for (int commit = 0; commit < 40; ++commit) {
      WriteTransaction t = db_->begin();
      for (uint64_t change = random() % 60; change > 0; --change) {
        std::string a = rows.key(), b = rows.key();
        switch (random() % 6) {
          case 0:
            REQUIRE_OK(t.erase_range(table, as_bytes(a), as_bytes(b)));
            if (a < b) model.erase(model.lower_bound(a), model.lower_bound(b));
            break;
          case 1:
            REQUIRE_OK(t.erase(table, a));
            model.erase(a);
            break;
          default:
            REQUIRE_OK(t.put(table, a, b));
            model[a] = b;
        }
      }
      REQUIRE_OK(t.commit());
      if (commit % 10 == 9) expect_equal(db_->snapshot(), table, model, random);
    }
    db_.reset();
    db_ = std::move(*Database::open(directory_.file("db")));
    table = *db_->open_table("t" + std::to_string(width));
    expect_equal(db_->snapshot(), table, model, random);
  }
}

// Rows of a view stay the caller's: they are erased by tombstones behind them.
TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.RowsOfViewsBeforeARangeAreErased",
                 "[EraseRangeTest]") {
  Table table = *db_->create_table("t", {.key_width = 4});
  std::string keys, values(20'000, 'v');
  for (uint32_t i = 0; i < 20'000; ++i)
    for (int shift = 24; shift >= 0; shift -= 8) keys += static_cast<char>(i >> shift);
  auto bound = [&](uint32_t i) { return as_bytes(std::string_view(keys).substr(4 * i, 4)); };
  WriteTransaction t = db_->begin();
  KeyColumn key_column = Column::fixed(keys.data(), 4, 20'000);
  ValueColumn value_column = Column::fixed(values.data(), 1, 20'000);
  REQUIRE_OK(t.put_view(table, key_column, value_column));
  REQUIRE_OK(t.erase_range(table, bound(100), bound(19'000)));
  REQUIRE_OK(t.put(table, bound(5'000), as_bytes("again")));
  REQUIRE_OK(t.erase_range(table, bound(19'500), std::nullopt));
  REQUIRE_OK(t.commit());
  CHECK(*db_->snapshot().count(table) == 100u + 1 + 500);
  CHECK(text(**db_->snapshot().get(table, bound(5'000))) == "again");
}

// A range between any two rows makes a chunk of each row: more than a sort takes.
TEST_CASE_METHOD(EraseRangeTest, "EraseRangeTest.ManyRangesAndRowsInTurns", "[EraseRangeTest]") {
  std::mt19937_64 random(seed());
  Table table = *db_->create_table("t");
  put(table, {"0", "stays", "k5", "k50", "k69999"});
  struct rusage before, after;
  REQUIRE(getrusage(RUSAGE_SELF, &before) == 0);
  Model model = {{"0", "0"}, {"stays", "stays"}};
  WriteTransaction t = db_->begin();
  for (int i = 0; i < 70'000; ++i) {
    std::string key = "k" + std::to_string(i), end = key + '\0';
    if (random() % 2) REQUIRE_OK(t.erase_range(table, as_bytes(key), as_bytes(end)));
    REQUIRE_OK(t.put(table, key, "row"));
    model[key] = "row";
    if (i % 10 == 0) {
      REQUIRE_OK(t.put(table, "erased", "row"));
      REQUIRE_OK(t.erase_range(table, as_bytes("e"), as_bytes("f")));
    }
    REQUIRE_OK(t.erase_range(table, as_bytes("x"), as_bytes("y")));
  }
  REQUIRE_OK(t.commit(Durability::none));
  REQUIRE(getrusage(RUSAGE_SELF, &after) == 0);
  // ThreadSanitizer keeps several times as much for itself.
  if (!under_thread_sanitizer) CHECK_MESSAGE(after.ru_maxrss - before.ru_maxrss < 400 << 10, "KiB");
  Snapshot snapshot = db_->snapshot();
  expect_scan(snapshot, table, model, {});
}

}  // namespace
}  // namespace stride::test
