// The rows of a table in a memtable, beside a std::map of what each commit has put.

#include "engine/memtable/table_tail.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/memtable.h"
#include "engine/memtable/memtable_rows.h"
#include "engine/memtable/pieces.h"
#include "tests/engine/memtable/insert_row.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test::tail_tests {
namespace {

struct Row {
  uint32_t commit;
  EntryKind kind;
  std::string key, value;
  bool operator==(const Row&) const = default;
};

Row row_of(const TailRow& row) {
  return {row.commit, row.kind, std::string(as_text(row.key())), std::string(as_text(row.value()))};
}

std::shared_ptr<const TableRecord> record(uint32_t id) {
  auto made = std::make_shared<TableRecord>();
  made->id = id;
  made->name = "t" + std::to_string(id);
  return made;
}

// Most rows are small, and some are larger than any block.
std::string random_value(std::mt19937_64& random) {
  const uint64_t bytes = random() % 500 == 0  ? random() % 3'000'000
                         : random() % 20 == 0 ? random() % 10'000
                                              : random() % 200;
  return std::string(bytes, static_cast<char>('a' + random() % 26));
}

class History {
 public:
  explicit History(uint64_t seed) : random_(seed), tail_(record(1)) {}

  // Some rows are reserved in vain, as by a commit that fails.
  void commit() {
    const uint32_t number = tail_.last_commit() + 1 + static_cast<uint32_t>(random_() % 2);
    std::vector<Row> rows;
    for (uint64_t n = 1 + random_() % 5; n > 0; --n) {
      Row row{number, EntryKind::put, "key" + std::to_string(random_() % 300),
              random_value(random_)};
      if (random_() % 50 == 0) row.key.assign(random_() % 65536, 'k');
      if (random_() % 8 == 0) row.kind = EntryKind::tombstone, row.value.clear();
      rows.push_back(std::move(row));
    }
    if (random_() % 10 == 0) {
      for (uint64_t n = random_() % 5; n > 0; --n)
        tail_.reserve(1, TableTail::row_bytes(random_() % 65536, random_() % 2'000'000));
      tail_.drop_reserved();
    }
    for (const Row& row : rows)
      insert_row(&tail_, number, row.kind, as_bytes(row.key), as_bytes(row.value));
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }

  const TableTail& tail() const { return tail_; }
  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row> rows_up_to(uint32_t commit) const {
    std::vector<Row> rows;
    for (const Row& row : rows_)
      if (row.commit <= commit) rows.push_back(row);
    return rows;
  }
  std::map<std::string, Row> newest(uint32_t commit) const {
    std::map<std::string, Row> newest;
    for (const Row& row : rows_up_to(commit)) newest[row.key] = row;
    return newest;
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
  TableTail tail_;
  std::vector<Row> rows_;
};

TEST_CASE("TableTailTest.FindsTheNewestRowUpToACommit", "[TableTailTest]") {
  History history(seed());
  for (int i = 0; i < 400; ++i) history.commit();
  CHECK(history.tail().rows() == history.rows().size());
  const uint32_t last = history.tail().last_commit();
  for (uint32_t commit : {0U, 1U, 2U, last / 3, last / 2, last - 1, last, last + 1}) {
    auto newest = history.newest(commit);
    for (int k = 0; k < 310; ++k) {
      std::string key = "key" + std::to_string(k);
      const TailRow* found = history.tail().find(as_bytes(key), commit);
      auto expected = newest.find(key);
      REQUIRE((found != nullptr) == (expected != newest.end()));
      if (found) REQUIRE(row_of(*found) == expected->second);
    }
    for (const auto& [key, row] : newest) {
      const TailRow* found = history.tail().find(as_bytes(key), commit);
      REQUIRE(found);
      REQUIRE(row_of(*found) == row);
    }
  }
}

TEST_CASE("TableTailTest.ACursorGoesOnWhereItStopped", "[TableTailTest]") {
  History history(seed());
  TableTail::Cursor cursor(history.tail());
  std::vector<Row> seen;
  for (int i = 0; i < 300; ++i) {
    history.commit();
    const uint32_t last = history.tail().last_commit();
    const uint32_t commit = last - static_cast<uint32_t>(history.random()() % std::min(last, 3U));
    while (const TailRow* row = cursor.next(commit)) seen.push_back(row_of(*row));
    if (seen.empty() || seen.back().commit <= commit)
      REQUIRE(seen.size() >= history.rows_up_to(commit).size());
  }
  while (const TailRow* row = cursor.next(UINT32_MAX)) seen.push_back(row_of(*row));
  CHECK(seen == history.rows());
}

TEST_CASE("TableTailTest.PiecesHaveTheNewestRowOfEachKey", "[TableTailTest]") {
  auto executor = Executor::make({.threads = 2, .backend = BackendKind::host});
  REQUIRE_OK(executor.status());
  History history(seed());
  std::vector<uint32_t> old_commits;
  size_t most_pieces = 0;
  for (int i = 0; i < 200; ++i) {
    history.commit();
    uint32_t commit = history.tail().last_commit();
    if (history.random()() % 10 == 0) old_commits.push_back(commit);
    // A snapshot that was taken earlier.
    if (!old_commits.empty() && history.random()() % 5 == 0)
      commit = old_commits[history.random()() % old_commits.size()];
    std::vector<std::shared_ptr<IndexedSegment>> pieces;
    REQUIRE_OK(history.tail().pieces().get(**executor, history.tail(), commit, &pieces));
    std::map<std::string, Row> found;  // newest first, so the first counts
    for (const auto& piece : pieces) {
      REQUIRE_OK(piece->prepare());
      for (uint64_t r = 0; r < piece->rows(); ++r) {
        std::string key(as_text(piece->keys()[r]));
        if (r > 0) REQUIRE(compare(piece->keys()[r - 1], piece->keys()[r]) < 0);
        found.try_emplace(key,
                          Row{0, piece->kind(r), key, std::string(as_text(piece->values()[r]))});
      }
    }
    auto expected = history.newest(commit);
    for (auto& [key, row] : expected) row.commit = 0;
    REQUIRE(found == expected);
    most_pieces = std::max(most_pieces, pieces.size());
  }
  CHECK(most_pieces <= 11);  // the logarithm of some 600 rows, and one
}

// The writer goes on while others read; what was published is there, whole.
TEST_CASE("TableTailTest.ReadersMayReadWhileRowsAreInserted", "[TableTailTest]") {
  Memtable memtable;
  const auto table = record(7);
  constexpr uint32_t commits = 20'000, keys = 97;
  std::atomic<bool> done{false};
  TestThreads threads;
  for (int t = 0; t < 2; ++t)
    threads.start([&] {
      while (!done) {
        const uint32_t visible = memtable.visible();
        const TableTail* tail = memtable.find(7);
        if (visible == 0) continue;
        REQUIRE_MESSAGE(tail != nullptr, "no tail");
        CHECK_MESSAGE(memtable.find(8) == nullptr, "another table");
        const uint32_t newest = visible - 1;  // the number that commit `visible` wrote
        std::string key = std::to_string(newest % keys);
        const TailRow* row = tail->find(as_bytes(key), visible);
        REQUIRE_MESSAGE(row != nullptr, key << " at " << visible);
        REQUIRE_MESSAGE(as_text(row->value()) == std::to_string(newest), key << " at " << visible);
        TableTail::Cursor cursor(*tail);
        uint32_t n = 0;
        for (; n < 50 && cursor.next(visible); ++n) {
        }
        REQUIRE_MESSAGE(n == std::min(visible, 50U), n << " rows of " << visible);
      }
    });
  for (uint32_t i = 0; i < commits; ++i) {
    TableTail& tail = memtable.tail(table);
    std::string key = std::to_string(i % keys), value = std::to_string(i);
    insert_row(&tail, memtable.next_commit(), EntryKind::put, as_bytes(key), as_bytes(value));
    memtable.publish(memtable.next_commit());
  }
  done = true;
  threads.join();
}

// Rows of many commits go in at once, in any order, while somebody reads what was published before.
TEST_CASE("MemtableTest.ThreadsInsertTogether", "[MemtableTest]") {
  std::mt19937_64 random(seed());
  Memtable memtable;
  const auto table = record(3), other = record(4);
  constexpr int writers = 4, groups = 300;
  std::map<std::pair<uint32_t, std::string>, std::string> model;
  std::atomic<int> group{0}, ready{0}, inserted{0};
  std::vector<std::unique_ptr<MemtableRows>> commits;
  std::atomic<size_t> next{0};
  std::vector<size_t> order;
  auto insert_some = [&] {
    for (size_t i = next++; i < order.size(); i = next++)
      commits[order[i]]->insert(memtable.visible() + 1 + static_cast<uint32_t>(order[i]));
  };
  TestThreads threads;
  for (int t = 0; t < writers; ++t)
    threads.start([&] {
      for (int g = 1; g <= groups; ++g) {
        while (group < g) std::this_thread::yield();
        insert_some();
        ++inserted;
        while (ready < g) std::this_thread::yield();
      }
    });
  for (int g = 1; g <= groups; ++g) {
    commits.clear();
    for (uint64_t n = 1 + random() % 40; n > 0; --n) {
      commits.push_back(std::make_unique<MemtableRows>());
      for (int t = 0; t < 2; ++t) {
        std::vector<std::string> keys, values;
        std::vector<uint8_t> kinds;
        for (uint64_t rows = random() % 4; rows > 0; --rows) {
          keys.push_back("k" + std::to_string(random() % 60));
          values.push_back(random() % 20 ? std::to_string(random()) : std::string(9000, 'v'));
          kinds.push_back(static_cast<uint8_t>(EntryKind::put));
          model[{t ? 4 : 3, keys.back()}] = values.back();
        }
        const Rows key_rows(keys), value_rows(values);
        commits.back()->add(t ? &other : &table, key_rows.column(), value_rows.column(),
                            random() % 2 ? kinds.data() : nullptr);
      }
    }
    order.resize(commits.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    if (g % 7 == 0) {  // as by a commit that fails
      for (auto& commit : commits) commit->reserve(&memtable);
      for (const auto& tail : memtable.tails()) tail->drop_reserved();
    }
    for (auto& commit : commits) commit->reserve(&memtable);
    next = 0;
    inserted = 0;
    group = g;
    insert_some();
    while (inserted < writers) std::this_thread::yield();
    uint32_t commit = memtable.visible();
    for (auto& c : commits) c->keep(++commit);
    memtable.publish(commit);
    ready = g;
    for (const auto& [key, value] : model) {
      const TailRow* row = memtable.find(key.first)->find(as_bytes(key.second), commit);
      REQUIRE(row);
      REQUIRE((as_text(row->value()) == value));
    }
  }
  threads.join();
  // Each key's rows lead from newer commits to older ones, and the cursor sees all in order.
  for (const auto& tail : memtable.tails()) {
    TableTail::Cursor cursor(*tail);
    uint64_t rows = 0;
    uint32_t before = 0;
    std::map<std::string, std::vector<std::pair<uint32_t, std::string>>> all;
    for (; const TailRow* row = cursor.next(UINT32_MAX); ++rows) {
      REQUIRE(row->commit >= before);
      before = row->commit;
      all[std::string(as_text(row->key()))].emplace_back(row->commit, as_text(row->value()));
    }
    CHECK(rows == tail->rows());
    for (const auto& [key, versions] : all)
      for (size_t i = 0; i < versions.size(); ++i) {
        if (i + 1 < versions.size() && versions[i + 1].first == versions[i].first) continue;
        const TailRow* row = tail->find(as_bytes(key), versions[i].first);
        REQUIRE(row);
        REQUIRE((as_text(row->value()) == versions[i].second));
      }
  }
}

TEST_CASE("MemtableTest.HasManyTables", "[MemtableTest]") {
  std::mt19937_64 random(seed());
  Memtable memtable;
  std::map<uint32_t, std::string> model;
  for (int i = 0; i < 20'000; ++i) {
    const auto id = static_cast<uint32_t>(random() % 5000 * 7919);
    TableTail& tail = memtable.tail(record(id));
    std::string value = std::to_string(i);
    insert_row(&tail, memtable.next_commit(), EntryKind::put, as_bytes("k"), as_bytes(value));
    memtable.publish(memtable.next_commit());
    model[id] = value;
  }
  CHECK(memtable.tails().size() == model.size());
  for (const auto& [id, value] : model) {
    const TableTail* tail = memtable.find(id);
    REQUIRE(tail);
    CHECK(as_text(tail->find(as_bytes("k"), memtable.visible())->value()) == value);
    CHECK(memtable.find(id + 1) == nullptr);
  }
}

}  // namespace
}  // namespace stride::test::tail_tests
