// Cursors that go both ways, beside iterators of a std::map.
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/read/cursor_model.h"
#include "tests/engine/read/ordered_reads.h"
#include "tests/support/fake_device.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

TEST_CASE("CursorTest.GoesWhereIteratorsOfAMapGo", "[CursorTest]") {
  Random random(seed());
  for (uint32_t key_width : {0u, 3u})
    for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{32} << 10, uint64_t{4} << 20}) {
      RandomOrderedTable rows(random, memtable_bytes, key_width);
      std::vector<std::pair<Snapshot, Model>> kept;
      const int steps = smaller_under_sanitizers(150, 40);
      for (int i = 0; i < steps; ++i) {
        if (i % 10 == 0) kept.emplace_back(rows.db().snapshot(), rows.model());
        const bool is_old = random() % 4 == 0;
        const auto& [then, model_then] = kept[random() % kept.size()];
        CursorOptions options = random_cursor(rows);
        auto cursor = is_old ? then.cursor(rows.table(), options)
                             : rows.db().snapshot().cursor(rows.table(), options);
        REQUIRE_OK(cursor);
        CursorModel expected(is_old ? model_then : rows.model(), options);
        expected.expect_at(*cursor);
        for (int move = 0; move < 60; ++move) {
          move_both(rows, &*cursor, &expected);
          if (move == 30) rows.change();
        }
      }
    }
}

TEST_CASE("CursorTest.ADeviceChangesNothing", "[CursorTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 0, 8, std::make_shared<FakeDevice>(1 << 20));
  for (int i = 0; i < 20; ++i) {
    rows.change();
    auto cursor = rows.db().snapshot().cursor(rows.table());
    REQUIRE_OK(cursor);
    CursorModel expected(rows.model(), {});
    for (int move = 0; move < 50; ++move) move_both(rows, &*cursor, &expected);
  }
}

TEST_CASE("CursorTest.KeepsWhatItReads", "[CursorTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 32 << 10, 0);
  for (int i = 0; i < 30; ++i) rows.change();
  const Model model = rows.model();
  std::vector<std::pair<Bytes, Bytes>> views;
  auto cursor = rows.db().snapshot().cursor(rows.table());
  REQUIRE_OK(cursor);
  for (cursor->seek_to_last(); cursor->valid(); cursor->previous()) {
    if (views.size() == 20) {
      for (int i = 0; i < 30; ++i) rows.change();
      REQUIRE_OK(rows.db().compact());
    }
    views.emplace_back(cursor->key(), cursor->value());
  }
  REQUIRE(views.size() == model.size());
  auto expected = model.rbegin();
  for (const auto& [key, value] : views) {
    CHECK(text(key) == expected->first);
    CHECK(text(value) == expected->second);
    ++expected;
  }
}

TEST_CASE("CursorTest.EmptyTablesHaveNoEntries", "[CursorTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 32 << 10, 0);
  auto cursor = rows.db().snapshot().cursor(rows.table());
  REQUIRE_OK(cursor);
  CursorModel expected({}, {});
  for (int move = 0; move < 20; ++move) move_both(rows, &*cursor, &expected);
}

TEST_CASE("CursorTest.WrongUses", "[CursorTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 32 << 10, 0), others(random, 32 << 10, 0);
  WriteTransaction t = rows.db().begin();
  REQUIRE_OK(t.put(rows.table(), "a", "1"));
  REQUIRE_OK(t.commit());
  const Snapshot now = rows.db().snapshot();
  CHECK(now.cursor(others.table()).status().code() == StatusCode::invalid_argument);
  CHECK(now.cursor(Table()).status().code() == StatusCode::invalid_argument);
  const Table later = *rows.db().create_table("later");
  CHECK(now.cursor(later).status().code() == StatusCode::not_found);

  auto cursor = now.cursor(rows.table());
  REQUIRE_OK(cursor);
  cursor->next();
  cursor->previous();
  CHECK_FALSE(cursor->valid());
  CHECK_OK(cursor->status());
  cursor->seek("a");
  Cursor moved(std::move(*cursor));
  CHECK(text(moved.key()) == "a");
  CHECK_FALSE(cursor->valid());
  cursor->seek("a");
  cursor->next();
  CHECK_FALSE(cursor->valid());
  CHECK(cursor->status().code() == StatusCode::closed);
  *cursor = std::move(moved);
  CHECK(text(cursor->value()) == "1");
  CHECK_OK(cursor->status());
  // No key lies within these bounds.
  auto nothing = now.cursor(rows.table(), {.from = "b", .to = "a"});
  REQUIRE_OK(nothing);
  nothing->seek("a");
  CHECK_FALSE(nothing->valid());
  nothing->seek_to_last();
  CHECK_FALSE(nothing->valid());
}

}  // namespace
}  // namespace stride::test
