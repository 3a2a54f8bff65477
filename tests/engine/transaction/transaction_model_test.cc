// Random transactions beside a std::map, while others change, merge and move what they read.
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/transaction/transaction_fixture.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

using Bound = std::optional<std::string>;  // none: no end

// What the transaction, or the others together, do to one table.
struct ModelChanges {
  std::map<std::string, std::optional<std::string>> last;  // none: erased

  void put(const std::string& key, const std::string& value) { last[key] = value; }
  void erase(const std::string& key) { last[key] = std::nullopt; }
};

struct ModelRange {
  std::string from;
  Bound to;
  bool contains(const std::string& key) const { return key >= from && (!to || key < *to); }
};

// One table's side of a transaction.
struct ModelSide {
  Table table;
  Model then;  // the snapshot
  ModelChanges own;
  std::vector<std::function<void(Model*)>> replay;  // own changes, in their order
  std::set<std::string> read_keys;
  std::vector<ModelRange> read_ranges;
  std::set<std::string> touched;  // by others, since the snapshot

  Model view() const {
    Model rows = then;
    for (const auto& [key, value] : own.last) {
      if (value)
        rows[key] = *value;
      else
        rows.erase(key);
    }
    return rows;
  }
  bool has_read(const std::string& key) const {
    if (read_keys.count(key) > 0) return true;
    return std::any_of(read_ranges.begin(), read_ranges.end(),
                       [&](const ModelRange& range) { return range.contains(key); });
  }
};

class TransactionModelTest : protected TransactionFixture {
 protected:
  TransactionModelTest() : TransactionFixture(32 << 10) {
    sides_[0].table = a_;
    sides_[1].table = b_;
  }

  void run_one() {
    Transaction t = db_->transaction();
    for (int i = 0; i < 2; ++i) {
      const Table table = sides_[i].table;
      sides_[i] = {};
      sides_[i].table = table;
      sides_[i].then = now_[i];
    }
    const uint64_t steps = 1 + random_() % 14;
    for (uint64_t i = 0; i < steps; ++i) {
      const int side = any_side();
      switch (random_() % 12) {
        case 0:
        case 1:
          change_by_others(side);
          break;
        case 2:
          move_rows(side);
          break;
        case 3:
        case 4:
        case 5:
          change_own(t, side);
          break;
        default:
          read_any(t, side);
      }
    }
    if (random_() % 10 == 0)
      t.abort();
    else
      end(t);
  }

  std::mt19937_64 random_{seed()};
  uint64_t commits_ = 0, conflicts_ = 0;

 private:
  int any_side() { return static_cast<int>(random_() % 2); }
  std::string any_key() {
    std::string key(1 + random_() % 2, 'a');
    for (char& c : key) c = static_cast<char>('a' + random_() % 6);
    return key;
  }
  std::string any_value() {
    return std::string(random_() % 3, 'v') + std::to_string(random_() % 5);
  }
  ModelRange any_range() {
    ModelRange range{any_key(), any_key()};
    if (random_() % 4 == 0) range.to = std::nullopt;
    return range;
  }
  std::optional<Bytes> end_of(const ModelRange& range) {
    return range.to ? std::optional(as_bytes(*range.to)) : std::nullopt;
  }

  // Some of these put what was there before.
  void change_by_others(int i) {
    ModelSide& side = sides_[i];
    Model& now = now_[i];
    WriteTransaction t = db_->begin();
    for (uint64_t n = 1 + random_() % 3; n > 0; --n) {
      const std::string key = any_key();
      if (random_() % 3 == 0) {
        REQUIRE_OK(t.erase(side.table, key));
        now.erase(key);
      } else {
        std::string value = any_value();
        REQUIRE_OK(t.put(side.table, key, value));
        now[key] = value;
      }
      side.touched.insert(key);
    }
    if (random_() % 4 == 0) {
      const ModelRange range = any_range();
      REQUIRE_OK(t.erase_range(side.table, as_bytes(range.from), end_of(range)));
      for (auto at = now.begin(); at != now.end();) {
        if (range.contains(at->first)) {
          side.touched.insert(at->first);
          at = now.erase(at);
        } else {
          ++at;
        }
      }
    }
    REQUIRE_OK(t.commit());
  }

  void move_rows(int i) {
    switch (random_() % 3) {
      case 0:
        return REQUIRE_OK(db_->compact());
      case 1:
        return put_many(sides_[i].table, 600);  // too large for the log; behind all keys
      default:
        return put_filler(sides_[i].table);  // lets the memtable be written
    }
  }
  void put_filler(const Table& table) {
    WriteTransaction t = db_->begin();
    for (int n = 0; n < 20; ++n)
      REQUIRE_OK(t.put(table, "~f" + std::to_string(n), std::string(300, 'f')));
    REQUIRE_OK(t.commit());
  }

  void change_own(Transaction& t, int i) {
    ModelSide& side = sides_[i];
    const std::string key = any_key();
    switch (random_() % 4) {
      case 0: {
        REQUIRE_OK(t.erase(side.table, key));
        side.own.erase(key);
        side.replay.push_back([=](Model* rows) { rows->erase(key); });
        return;
      }
      case 1: {
        const ModelRange range = any_range();
        REQUIRE_OK(t.erase_range(side.table, as_bytes(range.from), end_of(range)));
        for (const auto& [there, value] : side.view())
          if (range.contains(there)) side.own.erase(there);
        side.replay.push_back([=](Model* rows) {
          std::erase_if(*rows, [&](const auto& row) { return range.contains(row.first); });
        });
        return;
      }
      default: {
        const std::string value = any_value();
        REQUIRE_OK(t.put(side.table, key, value));
        side.own.put(key, value);
        side.replay.push_back([=](Model* rows) { (*rows)[key] = value; });
      }
    }
  }

  static std::optional<std::string> value_of(const Model& rows, const std::string& key) {
    const auto at = rows.find(key);
    return at == rows.end() ? std::nullopt : std::optional(at->second);
  }

  void note_key(ModelSide* side, const std::string& key) {
    if (side->own.last.count(key) == 0) side->read_keys.insert(key);
  }

  void read_any(Transaction& t, int i) {
    ModelSide& side = sides_[i];
    switch (random_() % 5) {
      case 0: {
        const std::string key = any_key();
        REQUIRE(read(t, side.table, key) == value_of(side.view(), key));
        return note_key(&side, key);
      }
      case 1:
        return read_batch(t, &side);
      case 2:
        return read_range(t, &side);
      case 3:
        return read_bounds(t, &side);
      default:
        if (random_() % 4) return read_range(t, &side);
        const auto counted = t.count(side.table);
        REQUIRE_OK(counted);
        REQUIRE(*counted >= side.view().size());  // there are rows behind all keys
        side.read_ranges.push_back({"", std::nullopt});
    }
  }

  void read_batch(Transaction& t, ModelSide* side) {
    const Model view = side->view();
    std::vector<std::string> keys(1 + random_() % 100);
    for (std::string& key : keys) key = any_key();
    const Rows queries(keys);
    const bool values = random_() % 2;
    GetResult got;
    FindResult found;
    if (values)
      REQUIRE_OK(t.get(side->table, queries.column(), &got));
    else
      REQUIRE_OK(t.find(side->table, queries.column(), &found));
    for (size_t n = 0; n < keys.size(); ++n) {
      const auto expected = value_of(view, keys[n]);
      REQUIRE((values ? got.found[n] : found.found[n]) == expected.has_value());
      if (expected) REQUIRE(text(values ? got.values[n] : found.value(n)) == *expected);
    }
    for (const std::string& key : keys) note_key(side, key);
  }

  void read_range(Transaction& t, ModelSide* side) {
    const ModelRange range = any_range();
    ScanOptions options{.from = range.from, .to = range.to.value_or("~")};
    options.reverse = random_() % 2;
    options.batch_rows = random_() % 4;
    const Model view = side->view();
    std::vector<std::string> expected;
    for (const auto& [key, value] : view)
      if (range.contains(key)) expected.push_back(key);
    if (options.reverse) std::reverse(expected.begin(), expected.end());
    REQUIRE(keys_of(t.scan(side->table, options)) == expected);
    side->read_ranges.push_back({*options.from, options.to});
  }

  void read_bounds(Transaction& t, ModelSide* side) {
    const Model view = side->view();
    std::vector<std::string> keys(1 + random_() % 3);
    for (std::string& key : keys) key = any_key();
    const Rows queries(keys);
    LowerBoundResult bounds;
    REQUIRE_OK(t.lower_bound(side->table, queries.column(), &bounds));
    for (size_t n = 0; n < keys.size(); ++n) {
      const auto expected = view.lower_bound(keys[n]);
      if (expected == view.end()) {
        REQUIRE((!bounds.found[n] || text(bounds.keys[n])[0] == '~'));
        side->read_ranges.push_back({keys[n], "~"});
        continue;
      }
      REQUIRE(bounds.found[n]);
      REQUIRE(text(bounds.keys[n]) == expected->first);
      REQUIRE(text(bounds.values[n]) == expected->second);
      side->read_ranges.push_back({keys[n], expected->first + '\0'});
    }
  }

  // Rows behind all keys ('~') are touched by moves: what was read to the end may be in conflict.
  void end(Transaction& t) {
    bool must_fail = false, may_fail = false, changes = false;
    for (int i = 0; i < 2; ++i) {
      const ModelSide& side = sides_[i];
      changes |= !side.replay.empty();
      for (const ModelRange& range : side.read_ranges) may_fail |= !range.to || *range.to >= "~";
      for (const std::string& key : side.touched) {
        if (!side.has_read(key)) continue;
        may_fail = true;
        must_fail |= value_of(side.then, key) != value_of(now_[i], key);
      }
    }
    const Status s = t.commit();
    if (!s.ok()) {
      REQUIRE_MESSAGE(s.code() == StatusCode::conflict, s.to_string());
      REQUIRE_MESSAGE((changes && may_fail), s.to_string());
      ++conflicts_;
    } else {
      REQUIRE((!changes || !must_fail));
      for (int i = 0; i < 2; ++i)
        for (const auto& change : sides_[i].replay) change(&now_[i]);
      ++commits_;
    }
    for (int i = 0; i < 2; ++i) {
      std::vector<std::string> expected;
      for (const auto& row : now_[i]) expected.push_back(row.first);
      REQUIRE(keys_of(db_->snapshot().scan(sides_[i].table, {.to = "~"})) == expected);
    }
  }

  ModelSide sides_[2];
  Model now_[2];
};

TEST_CASE_METHOD(TransactionModelTest, "TransactionModelTest.DoesWhatAMapDoes",
                 "[TransactionModelTest]") {
  for (int round = 0; round < smaller_under_sanitizers(1500, 800); ++round) run_one();
  CHECK(commits_ > 300u);
  CHECK(conflicts_ > 30u);
}

}  // namespace
}  // namespace stride::test
