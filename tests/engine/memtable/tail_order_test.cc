// What is sorted of a table's tail, at every commit, beside a std::map.

#include "engine/memtable/tail_order.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/tail_merger.h"
#include "tests/engine/memtable/insert_row.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test::order_tests {
namespace {

struct Value {
  EntryKind kind;
  std::string bytes;
  bool operator==(const Value&) const = default;
};
using Rows = std::vector<std::pair<std::string, Value>>;

std::shared_ptr<const TableRecord> order_table() {
  auto made = std::make_shared<TableRecord>();
  made->id = 1;
  made->name = "t";
  return made;
}

// Short keys, the empty one, zeros, and keys with the same first eight bytes and more.
std::string random_order_key(Random& random) {
  switch (random() % 4) {
    case 0:
      return random_bytes(random, random() % 4, 3);
    case 1:
      return "same first bytes" + std::to_string(random() % 500);
    case 2:
      return std::string(random() % 20, '\0');
    default:
      return big_endian(random() % 3000);
  }
}

class OrderHistory {
 public:
  explicit OrderHistory(uint64_t seed) : random_(seed), tail_(order_table()) {
    auto made = Executor::make({.threads = 2, .backend = BackendKind::host});
    REQUIRE_OK(made.status());
    executor_ = *made;
  }

  // The keys of one kind alone share bytes.
  void commit(uint64_t rows, bool one_kind) {
    auto next = newest();
    const uint32_t commit = tail_.last_commit() + 1;
    for (; rows > 0; --rows) {
      const std::string key =
          one_kind ? "user" + std::to_string(random_() % 100'000) : random_order_key(random_);
      const bool erase = random_() % 6 == 0;
      Value value{erase ? EntryKind::tombstone : EntryKind::put,
                  erase ? "" : std::to_string(random_())};
      insert_row(&tail_, commit, value.kind, as_bytes(key), as_bytes(value.bytes));
      next[key] = value;
    }
    history_[commit] = std::move(next);
    while (history_.size() > 40) history_.erase(std::next(history_.begin(), 7));
  }

  // Scans within random bounds at some commit, with what was sorted by then.
  void check_scan() {
    auto at = std::next(history_.begin(), static_cast<ptrdiff_t>(random_() % history_.size()));
    if (random_() % 2) at = std::prev(history_.end());
    auto runs = tail_.order().get(*executor_, tail_, at->first);
    REQUIRE_OK(runs.status());
    most_runs_ = std::max(most_runs_, (*runs)->newest_first.size());
    const ScanOptions options = random_bounds();
    TailMerger merger({{&tail_, at->first, *runs}}, options);
    Rows found;
    for (; const TailRow* row = merger.row(); merger.next())
      found.emplace_back(as_text(row->key()), Value{row->kind, std::string(as_text(row->value()))});
    Rows expected;
    for (const auto& [key, value] : at->second)
      if (is_within(key, options)) expected.emplace_back(key, value);
    if (options.reverse) std::reverse(expected.begin(), expected.end());
    REQUIRE(found == expected);
  }

  // All at the last commit as one run.
  void check_one_run() {
    auto run = tail_.order().get_one(*executor_, tail_, tail_.last_commit());
    REQUIRE_OK(run.status());
    Rows found;
    const auto rows = (*run)->rows();
    for (const TailRow* row : rows)
      found.emplace_back(as_text(row->key()), Value{row->kind, std::string(as_text(row->value()))});
    const auto expected = newest();
    REQUIRE(found == Rows(expected.begin(), expected.end()));
    CHECK(tail_.order().unsorted(tail_) == 0);
  }

  Random& random() { return random_; }
  size_t most_runs() const { return most_runs_; }

 private:
  std::map<std::string, Value> newest() const {
    return history_.empty() ? std::map<std::string, Value>() : history_.rbegin()->second;
  }
  std::string bound() {
    if (random_() % 2) return random_order_key(random_);
    return "user" + std::to_string(random_() % 100'000);
  }
  ScanOptions random_bounds() {
    ScanOptions options;
    if (random_() % 2) options.from = bound();
    if (random_() % 2) options.to = bound();
    options.from_inclusive = random_() % 2;
    options.to_inclusive = random_() % 2;
    if (random_() % 4 == 0) options.prefix = bound().substr(0, random_() % 10);
    options.reverse = random_() % 2;
    return options;
  }
  static bool is_within(const std::string& key, const ScanOptions& options) {
    if (options.from && (key < *options.from || (key == *options.from && !options.from_inclusive)))
      return false;
    if (options.to && (key > *options.to || (key == *options.to && !options.to_inclusive)))
      return false;
    return !options.prefix || key.starts_with(*options.prefix);
  }

  Random random_;
  TableTail tail_;
  std::shared_ptr<Executor> executor_;
  std::map<uint32_t, std::map<std::string, Value>> history_;  // by commit; of some
  size_t most_runs_ = 0;
};

TEST_CASE("TailOrderTest.ScansSeeTheNewestRowsOfTheirCommit", "[TailOrderTest]") {
  OrderHistory history(seed());
  for (int i = 0; i < 300; ++i) {
    history.commit(1 + history.random()() % 20, /*one_kind=*/false);
    if (history.random()() % 3) history.check_scan();
    if (history.random()() % 20 == 0) history.check_one_run();
  }
  history.check_one_run();
}

TEST_CASE("TailOrderTest.ManyRowsBecomeFewRuns", "[TailOrderTest]") {
  OrderHistory history(seed());
  const uint64_t many = smaller_under_sanitizers<uint64_t>(40'000, 35'000);  // with all threads
  for (uint64_t rows : {many, uint64_t{3000}, many / 2, uint64_t{1}, uint64_t{300}}) {
    history.commit(rows, /*one_kind=*/true);
    history.check_scan();
    for (int i = 0; i < 20; ++i) history.commit(1 + i % 3, /*one_kind=*/true);
    history.check_scan();
    history.check_scan();
  }
  CHECK(history.most_runs() <= 4);
  history.check_one_run();
  history.commit(5, /*one_kind=*/false);
  history.check_scan();
  history.check_one_run();
}

}  // namespace
}  // namespace stride::test::order_tests
