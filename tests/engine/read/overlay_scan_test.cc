// Scans of rows that are in memtables, sealed ones and segments, beside a std::map.

#include <atomic>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/background_work.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test::overlay_tests {
namespace {

using Found = std::vector<std::pair<std::string, std::string>>;

std::string random_key_of(Random& random) {
  switch (random() % 4) {
    case 0:
      return random_bytes(random, random() % 4, 3);
    case 1:
      return "same first bytes" + std::to_string(random() % 2000);
    case 2:
      return std::string(random() % 20, '\0');
    default:
      return std::to_string(random() % 3000);
  }
}

bool lies_within(const std::string& key, const ScanOptions& options) {
  if (options.from && (key < *options.from || (key == *options.from && !options.from_inclusive)))
    return false;
  if (options.to && (key > *options.to || (key == *options.to && !options.to_inclusive)))
    return false;
  return !options.prefix || key.starts_with(*options.prefix);
}

ScanOptions random_scan(Random& random) {
  ScanOptions options;
  if (random() % 2) options.from = random_key_of(random);
  if (random() % 3 == 0) options.to = random_key_of(random);
  if (random() % 4 == 0) options.prefix = random_key_of(random).substr(0, random() % 18);
  options.from_inclusive = random() % 2;
  options.to_inclusive = random() % 2;
  options.reverse = random() % 2;
  options.batch_rows = static_cast<uint32_t>(random() % 3 == 0 ? 0 : 1 + random() % 100);
  if (random() % 20 == 0) options.batch_rows = UINT32_MAX;
  return options;
}

class OverlayTest {
 public:
  OverlayTest(uint64_t seed, uint64_t memtable_bytes, bool background) : random_(seed) {
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    options.backend = BackendKind::host;
    options.memtable_bytes = memtable_bytes;
    set_background_work(&options, background);
    auto opened = Database::open("/db", options);
    REQUIRE_OK(opened.status());
    db_ = std::move(*opened);
    table_ = *db_->create_table("t");
    other_ = *db_->create_table("other");
  }

  void change() {
    const uint64_t which = random_() % 60;
    if (which == 0) return REQUIRE_OK(db_->compact());
    WriteTransaction t = db_->begin();
    if (which == 1) {
      // A run of its own, newer than a memtable that is still to become one.
      Model rows;
      for (int i = 0; i < 300; ++i)
        rows[random_key_of(random_)] = std::string(random_() % 3000, 'b');
      for (const auto& [key, value] : rows) {
        REQUIRE_OK(t.put(table_, key, value));
        model_[key] = value;
      }
    } else if (which == 2) {
      REQUIRE_OK(t.put(other_, "k", "v"));
    } else {
      const uint64_t rows = random_() % 10 == 0 ? random_() % 600 : 1 + random_() % 4;
      for (uint64_t i = 0; i < rows; ++i) change_row(t);
    }
    REQUIRE_OK(t.commit(Durability::none));
  }

  void keep_snapshot() {
    kept_.emplace_back(db_->snapshot(), model_);
    if (kept_.size() > 5) kept_.erase(kept_.begin());
  }
  void check_scan() {
    if (kept_.empty() || random_() % 2) return check(db_->snapshot(), model_);
    const auto& [snapshot, model] = kept_[random_() % kept_.size()];
    check(snapshot, model);
  }

  Random& random() { return random_; }

 private:
  void change_row(WriteTransaction& t) {
    const std::string key = random_key_of(random_);
    if (random_() % 5 == 0) {
      REQUIRE_OK(t.erase(table_, as_bytes(key)));
      model_.erase(key);
      return;
    }
    const uint64_t bytes = random_() % 300 == 0 ? random_() % 300'000 : random_() % 100;
    model_[key] = random_bytes(random_, bytes, 4);
    REQUIRE_OK(t.put(table_, key, model_[key]));
  }

  void check(const Snapshot& snapshot, const Model& model) {
    const ScanOptions options = random_scan(random_);
    Found expected;
    for (const auto& row : model)
      if (lies_within(row.first, options)) expected.push_back(row);
    if (options.reverse) std::reverse(expected.begin(), expected.end());
    // Some readers want the first rows alone.
    const uint64_t most = random_() % 2 ? UINT64_MAX : random_() % 200;
    auto scan = snapshot.scan(table_, options);
    REQUIRE_OK(scan.status());
    Found found;
    ScanBatch batch;
    while (found.size() < most && scan->next(&batch)) {
      REQUIRE(batch.keys.size > 0);
      REQUIRE(batch.values.size == batch.keys.size);
      if (options.batch_rows) REQUIRE(batch.keys.size <= options.batch_rows);
      for (uint64_t i = 0; i < batch.keys.size; ++i)
        found.emplace_back(text(batch.keys[i]), text(batch.values[i]));
    }
    REQUIRE_OK(scan->status());
    if (found.size() < expected.size()) {
      REQUIRE(found.size() >= most);
      expected.resize(found.size());
    }
    REQUIRE(found == expected);
  }

  Random random_;
  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
  Table table_, other_;
  Model model_;
  std::vector<std::pair<Snapshot, Model>> kept_;
};

TEST_CASE("OverlayScanTest.RowsOfMemtablesAndSegmentsComeInOrder", "[OverlayScanTest]") {
  const uint64_t first_seed = seed();
  int number = 0;
  for (uint64_t memtable_bytes : {uint64_t{128} << 20, uint64_t{2} << 20, uint64_t{400'000}})
    for (bool background : {false, true}) {
      OverlayTest test(first_seed + static_cast<uint64_t>(number++), memtable_bytes, background);
      const int steps = smaller_under_sanitizers(600, 150);
      for (int i = 0; i < steps; ++i) {
        test.change();
        if (test.random()() % 20 == 0) test.keep_snapshot();
        test.check_scan();
      }
    }
}

TEST_CASE("OverlayScanTest.RowsOfOneWidthAreFixedColumns", "[OverlayScanTest]") {
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  options.backend = BackendKind::host;
  auto db = std::move(*Database::open("/db", options));
  const Table table = *db->create_table("t");
  auto put = [&](uint64_t first, uint64_t step) {
    WriteTransaction t = db->begin();
    for (uint64_t i = first; i < 3000; i += step) REQUIRE_OK(t.put(table, big_endian(i), "four"));
    REQUIRE_OK(t.commit(Durability::none));
  };
  put(0, 2);
  REQUIRE_OK(db->compact());
  put(1, 10);
  put(2, 17);
  uint64_t rows = 0;
  auto scan = db->snapshot().scan(table);
  REQUIRE_OK(scan.status());
  for (ScanBatch batch; scan->next(&batch); rows += batch.keys.size) {
    CHECK((batch.keys.is_fixed() && batch.keys.width == 8));
    CHECK((batch.values.is_fixed() && batch.values.width == 4));
  }
  CHECK(rows == *db->snapshot().count(table));
}

// Each commit adds a key, and says how many there are: a scan sees as many, and no other ones.
TEST_CASE("OverlayScanTest.ManyMayScanWhileOneInserts", "[OverlayScanTest]") {
  Random random(seed());
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  options.threads = 2;
  options.backend = BackendKind::host;
  options.memtable_bytes = 1 << 20;
  auto db = std::move(*Database::open("/db", options));
  const Table table = *db->create_table("t");
  const int commits = smaller_under_sanitizers(30'000, 6'000);
  std::vector<int> numbers(static_cast<size_t>(commits));
  std::iota(numbers.begin(), numbers.end(), 1'000'000);
  std::shuffle(numbers.begin(), numbers.end(), random);
  auto commit = [&](int i) {
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.put(table, "count", std::to_string(i + 1)));
    REQUIRE_OK(
        t.put(table, "key" + std::to_string(numbers[static_cast<size_t>(i)]), std::to_string(i)));
    REQUIRE_OK(t.commit(Durability::none));
  };
  commit(0);
  std::atomic<bool> done{false};
  TestThreads threads;
  for (uint64_t t = 0; t < 3; ++t)
    threads.start([&, t] {
      Random mine(t);
      while (!done) {
        const Snapshot snapshot = db->snapshot();
        ScanOptions bounds;
        bounds.reverse = mine() % 2;
        bounds.batch_rows = static_cast<uint32_t>(mine() % 200);
        const int from = 1'000'000 + static_cast<int>(mine() % static_cast<uint64_t>(commits));
        bounds.from = "key" + std::to_string(from);
        auto count = snapshot.get(table, "count");
        REQUIRE_OK(count.status());
        const int visible = std::stoi(std::string(as_text(**count)));
        int64_t expected = 0, found = 0;
        for (int i = 0; i < visible; ++i) expected += numbers[static_cast<size_t>(i)] >= from;
        auto scan = snapshot.scan(table, bounds);
        REQUIRE_OK(scan.status());
        ScanBatch batch;
        std::string last;
        while (scan->next(&batch))
          for (uint64_t i = 0; i < batch.keys.size; ++i, ++found) {
            const std::string key = text(batch.keys[i]);
            const bool ordered = last.empty() || (bounds.reverse ? key < last : key > last);
            REQUIRE_MESSAGE(ordered, key);
            REQUIRE_MESSAGE(std::stoi(text(batch.values[i])) < visible, key);
            last = key;
          }
        REQUIRE_OK(scan->status());
        REQUIRE_MESSAGE(found == expected, found << " rows of " << expected << " from " << from);
      }
    });
  for (int i = 1; i < commits && !threads.failed(); ++i) commit(i);
  done = true;
  threads.join();
}

}  // namespace
}  // namespace stride::test::overlay_tests
