// Batches that are larger than the memory for them, and so become several segments.

#include "engine/build/row_source.h"
#include "engine/database.h"
#include "engine/write/staged_rows.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

constexpr uint64_t rows = 60'000;
constexpr uint64_t value_bytes = 1000;

std::string key_of(uint64_t i) {
  char key[9];
  std::snprintf(key, sizeof key, "%08llu", static_cast<unsigned long long>(i * 48271 % 99999989));
  return key;
}

class LargeBatchTest {
 protected:
  LargeBatchTest() {
    for (uint64_t i = 0; i < rows; ++i) {
      keys_.add(key_of(i));
      std::string value = std::to_string(i);
      value.resize(i % 100 ? value_bytes : 0, 'v');
      values_.add(value);
      model_[key_of(i)] = value;
    }
    options_.file_system = &fs_;
    options_.memory_limit_bytes = 1;
    open();
  }
  void open() {
    db_.reset();
    options_.memtable_bytes = 0;  // each commit makes a segment
    auto db = Database::open("db", options_);
    REQUIRE_OK(db);
    db_ = std::move(*db);
    table_ = *db_->open_or_create_table("t", {.key_width = 8});
  }
  Status commit() {
    WriteTransaction t = db_->begin();
    STRIDE_TRY(t.put_view(table_, KeyColumn::fixed(keys_.column().data, 8, rows).slice(0, 30'000),
                          values_.column().slice(0, 30'000)));
    STRIDE_TRY(t.put_view(table_,
                          KeyColumn::fixed(keys_.column().data, 8, rows).slice(30'000, 30'000),
                          values_.column().slice(30'000, 30'000)));
    return t.commit();
  }
  void expect_all() {
    std::mt19937_64 random(seed());
    std::vector<std::string> queries;
    for (int i = 0; i < 2000; ++i) queries.push_back(key_of(random() % (rows + 100)));
    expect_lookups(db_->snapshot(), table_, model_, queries);
    expect_scan(db_->snapshot(), table_, model_, {});
    expect_scan(db_->snapshot(), table_, model_, {.from = key_of(17), .reverse = true});
    CHECK(*db_->snapshot().count(table_) == model_.size());
    REQUIRE_OK(db_->verify());
  }

  MemoryFileSystem fs_;
  Options options_;
  Rows keys_, values_;
  Model model_;
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(LargeBatchTest, "LargeBatchTest.BecomesOneRunOfSeveralSegments",
                 "[LargeBatchTest]") {
  REQUIRE_OK(commit());
  TableStatistics statistics = db_->tables()[0];
  CHECK(statistics.runs == 1u);
  CHECK(statistics.segments == 4u);  // of 60 MB, 16 MiB each
  CHECK(statistics.rows == rows);
  expect_all();
  open();
  expect_all();
  REQUIRE_OK(db_->compact());  // nothing to be done
  CHECK(db_->tables()[0].segments == 4u);

  // What is newer lies over all of them, and compaction makes one run of both.
  WriteTransaction t = db_->begin();
  for (uint64_t i = 0; i < rows; i += 1000) {
    REQUIRE_OK(t.erase(table_, key_of(i)));
    model_.erase(key_of(i));
    REQUIRE_OK(t.put(table_, key_of(i + 1), "new"));
    model_[key_of(i + 1)] = "new";
  }
  REQUIRE_OK(t.commit());
  CHECK(db_->tables()[0].runs == 2u);
  expect_all();
  REQUIRE_OK(db_->compact());
  CHECK(db_->tables()[0].runs == 1u);
  CHECK(db_->tables()[0].segments == 4u);
  expect_all();
  open();
  expect_all();
}

TEST_CASE_METHOD(LargeBatchTest, "LargeBatchTest.FailsWhole", "[LargeBatchTest]") {
  fs_.set_capacity(40 << 20);
  Status s = commit();
  CHECK_MESSAGE(s.code() == StatusCode::no_space, s.to_string());
  CHECK(db_->tables()[0].rows == 0u);
  auto names = fs_.list("db");
  REQUIRE_OK(names);
  for (const std::string& name : *names) CHECK_MESSAGE(!name.ends_with(".seg"), name);
  fs_.set_capacity(UINT64_MAX);
  REQUIRE_OK(commit());
  expect_all();
}

// A segment has no more rows than ranks, however few bytes they have.
TEST_CASE("CutRowsTest.PartsHaveNeitherTooManyBytesNorRows", "[CutRowsTest]") {
  StagedChunk chunk(0, {1000, 1000, 100'000});
  Rows keys, values;
  for (int i = 0; i < 1000; ++i) {
    keys.add("");
    values.add(std::string(i < 500 ? 0 : 100, 'v'));
  }
  ValueColumn value_column = values.column();
  REQUIRE(chunk.append(keys.column(), &value_column, 0, EntryKind::put) == 1000u);
  StagedRows rows;
  rows.chunks = {&chunk};
  rows.keys = {chunk.keys()};
  rows.values = {chunk.values()};
  for (uint32_t i = 0; i < 1000; ++i) rows.sorted.order.push_back(make_row_id(0, i));
  CHECK(cut_rows(rows, 1 << 20, 1000) == (std::vector<uint64_t>{0}));
  CHECK(cut_rows(rows, 1 << 20, 400) == (std::vector<uint64_t>{0, 400, 800}));
  CHECK(cut_rows(rows, 20'000, 1000) == (std::vector<uint64_t>{0, 700, 900}));
  CHECK(cut_rows(rows, 20'000, 300) == (std::vector<uint64_t>{0, 300, 600, 800}));
  CHECK(cut_rows(rows, 1, 1000).size() == 500u);
}

}  // namespace
}  // namespace stride::test
