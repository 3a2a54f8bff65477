// Reads in key order of transactions: what they find among own changes, and what counts as read.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/read/cursor_model.h"
#include "tests/engine/read/ordered_reads.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

TEST_CASE("TransactionCursorTest.OrderedReadsSeeOwnChanges", "[TransactionCursorTest]") {
  Random random(seed());
  for (uint64_t memtable_bytes : {uint64_t{32} << 10, uint64_t{4} << 20}) {
    RandomOrderedTable rows(random, memtable_bytes, 0);
    const int rounds = smaller_under_sanitizers(60, 15);
    for (int round = 0; round < rounds; ++round) {
      Transaction t = rows.db().transaction();
      Model model = rows.model();
      for (int i = 0; i < 4; ++i) {
        expect_bounds(t, rows.table(), model, rows.queries(random() % 30));
        const std::string from = rows.query(), to = rows.query();
        auto counted = t.count(rows.table(), as_bytes(from), as_bytes(to));
        REQUIRE_OK(counted);
        REQUIRE(*counted == count_between(model, from, to));
        const CursorOptions options = random_cursor(rows);
        auto cursor = t.cursor(rows.table(), options);
        REQUIRE_OK(cursor);
        CursorModel expected(model, options);
        for (int move = 0; move < 30; ++move) {
          move_both(rows, &*cursor, &expected);
          // The cursor has what was there when it was made.
          if (move == 15 && random() % 2) rows.change_rows(t, &model);
        }
        rows.change_rows(t, &model);
      }
      rows.change();
    }
  }
}

// Keys from `from` on and below `to`; none: no end.
struct ReadRange {
  std::string from;
  std::optional<std::string> to;
  bool contains(const std::string& key) const { return key >= from && (!to || key < *to); }
};

std::string behind(const std::string& key) { return key + '\0'; }

// Reads at random, and notes what must count as read.
class OrderedReader {
 public:
  OrderedReader(RandomOrderedTable& rows, Transaction& t) : rows_(rows), t_(t) {}

  void read() {
    switch (rows_.random()() % 5) {
      case 0:
        return upper_bound();
      case 1:
        return previous();
      case 2:
        return count();
      default:
        return move_cursor();
    }
  }
  bool has_read(const std::string& key) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const ReadRange& range) { return range.contains(key); });
  }

 private:
  void upper_bound() {
    const std::string query = rows_.query();
    LowerBoundResult result;
    REQUIRE_OK(t_.upper_bound(rows_.table(), Rows({query}).column(), &result));
    ranges_.push_back({behind(query), {}});
    if (result.found[0]) ranges_.back().to = behind(text(result.keys[0]));
  }
  void previous() {
    const std::string query = rows_.query();
    LowerBoundResult result;
    REQUIRE_OK(t_.previous(rows_.table(), Rows({query}).column(), &result));
    ranges_.push_back({text(result.keys[0]), behind(query)});
  }
  void count() {
    const std::string from = rows_.query(), to = rows_.query();
    REQUIRE_OK(t_.count(rows_.table(), as_bytes(from), as_bytes(to)));
    ranges_.push_back({from, to});
  }
  void move_cursor() {
    const CursorOptions options{
        .from = rows_.random()() % 2 ? std::optional(rows_.query()) : std::nullopt,
        .to = rows_.random()() % 2 ? std::optional(rows_.query()) : std::nullopt};
    const std::string first = options.from.value_or("");
    auto cursor = t_.cursor(rows_.table(), options);
    REQUIRE_OK(cursor);
    CursorModel model(rows_.model(), options);
    for (int i = 0; i < 6; ++i) {
      const std::optional<std::string> before = model.key();
      const auto [move, key] = move_both(rows_, &*cursor, &model);
      const std::optional<std::string> found = model.key();
      const auto found_end = found ? std::optional(behind(*found)) : options.to;
      if ((move == 'p' || move == 'n') && !before) continue;
      if (move == 'n') ranges_.push_back({*before, found_end});
      if (move == 'p') ranges_.push_back({found.value_or(first), behind(*before)});
      if (move == 'f') ranges_.push_back({first, found_end});
      if (move == '>') ranges_.push_back({std::max(first, key), found_end});
      if (move == 'l') ranges_.push_back({found.value_or(first), options.to});
      if (move == '<') {
        const std::string end = behind(key);
        ranges_.push_back({found.value_or(first), options.to ? std::min(*options.to, end) : end});
      }
      // Another read between the steps of a cursor.
      if (rows_.random()() % 4 == 0) previous();
    }
  }

  RandomOrderedTable& rows_;
  Transaction& t_;
  std::vector<ReadRange> ranges_;
};

TEST_CASE("TransactionCursorTest.WhatIsPassedOverIsRead", "[TransactionCursorTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 32 << 20, 0);
  const Table other = *rows.db().create_table("other");
  for (int i = 0; i < 3; ++i) rows.change();
  int conflicts = 0;
  const int rounds = smaller_under_sanitizers(1500, 300);
  for (int round = 0; round < rounds; ++round) {
    Transaction t = rows.db().transaction();
    OrderedReader reader(rows, t);
    for (uint64_t reads = 1 + random() % 2; reads > 0; --reads) reader.read();
    const std::string changed = rows.query();
    REQUIRE_OK(t.put(other, "a", "b"));
    rows.put(changed, std::to_string(round));
    const Status s = t.commit();
    const bool must_fail = reader.has_read(changed);
    REQUIRE_MESSAGE(s.ok() != must_fail, s.to_string());
    if (!s.ok()) REQUIRE(s.code() == StatusCode::conflict);
    conflicts += !s.ok();
    if (rows.model().size() > 60) rows.erase_all();
  }
  CHECK(conflicts > rounds / 20);
  CHECK(conflicts < rounds);
}

TEST_CASE("TransactionCursorTest.CursorsEndWithTheirTransaction", "[TransactionCursorTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 1 << 20, 0);
  rows.put("a", "1");
  rows.put("b", "2");
  Transaction t = rows.db().transaction();
  auto cursor = t.cursor(rows.table());
  REQUIRE_OK(cursor);
  cursor->seek_to_first();
  CHECK(text(cursor->key()) == "a");
  t.abort();
  cursor->next();
  CHECK_FALSE(cursor->valid());
  CHECK(cursor->status().code() == StatusCode::closed);
  cursor->seek("a");
  CHECK_FALSE(cursor->valid());
  LowerBoundResult result;
  const Rows query({"a"});
  uint64_t count = 0;
  CHECK(t.cursor(rows.table()).status().code() == StatusCode::closed);
  CHECK(t.upper_bound(rows.table(), query.column(), &result).code() == StatusCode::closed);
  CHECK(t.previous(rows.table(), query.column(), &result).code() == StatusCode::closed);
  CHECK(t.count(rows.table(), std::nullopt, as_bytes("b")).status().code() == StatusCode::closed);
  CHECK(t.count(rows.table(), query.column(), query.column(), {&count, 1}).code() ==
        StatusCode::closed);
  RandomOrderedTable others(random, 1 << 20, 0);
  Transaction next = rows.db().transaction();
  CHECK(next.cursor(others.table()).status().code() == StatusCode::invalid_argument);
  CHECK(next.count(others.table(), as_bytes("a"), std::nullopt).status().code() ==
        StatusCode::invalid_argument);
}

}  // namespace
}  // namespace stride::test
