// Random operations for as long as STRIDE_SOAK_SECONDS says, each answer compared with a
// std::map's.
#include "tests/support/soak.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/random_rows.h"
#include "tests/support/random_tables.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

const Shape shapes[] = {
    {"fixed4", 4, 5, 4, 60},        {"fixed8", 8, 26, 8, 44},  {"clustered8", 8, 3, 8, 44},
    {"fixed16", 16, 3, 16, 100},    {"fixed20", 20, 2, 20, 3}, {"short", 0, 4, 4, 20},
    {"zeros_and_ones", 0, 2, 9, 5}, {"any", 0, 26, 30, 200},   {"long", 0, 3, 300, 3000},
    {"longest", 0, 2, 65535, 20},
};

// One table: what it must hold, and what its keys are like.
struct SoakTable {
  Shape shape;
  Table table;
  Model model;
};

// A database that is changed and asked at random.
class Operations {
 public:
  explicit Operations(std::mt19937_64& random) : random_(random) {}

  void start() {
    for (int i = 0; i < 3; ++i) create_table();
    open();
  }

  void step() {
    switch (random_() % 30) {
      case 0:
        return open();
      case 1:
        return compact();
      case 2:
        return replace_table();
      case 3:
      case 4:
        return keep_snapshot();
      case 5:
        return check_kept();
      case 6:
        return abort();
      case 7:
      case 8:
      case 9:
        return check(any_table());
      case 10:
        return verify();
      default:
        return commit();
    }
  }

  void finish() {
    check_kept();
    open();
    for (SoakTable& t : tables_) check(t);
    REQUIRE_OK(database_->verify());
  }

 private:
  struct Kept {
    Snapshot snapshot;
    Table table;
    Model model;
  };

  SoakTable& any_table() { return tables_[random_() % tables_.size()]; }

  void create_table() {
    tables_.push_back({shapes[random_() % std::size(shapes)], {}, {}});
    names_.push_back("table " + std::to_string(next_name_++));
    if (!database_) return;
    auto table = database_->create_table(names_.back(), {tables_.back().shape.key_width});
    REQUIRE_OK(table);
    tables_.back().table = *table;
  }

  void compact() { REQUIRE_OK(database_->compact()); }

  void verify() { REQUIRE_OK(database_->verify()); }

  void replace_table() {
    if (random_() % 4) return;
    size_t i = random_() % tables_.size();
    REQUIRE_OK(database_->drop_table(names_[i]));
    tables_.erase(tables_.begin() + static_cast<ptrdiff_t>(i));
    names_.erase(names_.begin() + static_cast<ptrdiff_t>(i));
    create_table();
  }

  // Closes the database, if it is open, and opens it with other options.
  void open() {
    if (database_ && random_() % 2) REQUIRE_OK(database_->close());
    database_.reset();
    Options options;
    options.threads = 1 + random_() % 3;
    options.durability = static_cast<Durability>(random_() % 3);
    if (random_() % 2) options.memory_limit_bytes = 1;
    if (random_() % 2) options.tree.strides = {1 + uint32_t(random_() % 12), 4, 8, 3};
    if (random_() % 2) options.tree.leaf_capacity = 1 + random_() % 9;
    auto db = Database::open(directory_.path(), options);
    REQUIRE_OK(db);
    database_ = std::move(*db);
    for (size_t i = 0; i < tables_.size(); ++i) {
      auto table = database_->open_or_create_table(names_[i], {tables_[i].shape.key_width});
      REQUIRE_OK(table);
      tables_[i].table = *table;
    }
  }

  // Stages changes of one table; what is staged by reference lives in `views`.
  void stage(WriteTransaction& t, SoakTable* table, std::deque<std::pair<Rows, Rows>>* views) {
    const bool large = table->shape.longest_key > 10'000;
    RandomRows random_rows(table->shape, random_);
    Model& model = table->model;
    for (uint64_t part = 1 + random_() % 3; part > 0; --part) {
      auto& [keys, values] = views->emplace_back();
      const bool erases = random_() % 3 == 0;
      uint64_t max_rows = large ? 8 : random_() % 10 == 0 ? 2000 : 60;
      for (uint64_t n = random_() % max_rows; n > 0; --n) {
        std::string key = random_rows.key(), value = random_rows.value();
        if (!model.empty() && random_() % 2) {
          auto near = model.lower_bound(key);
          if (near != model.end()) key = near->first;
        }
        keys.add(key);
        values.add(value);
        if (erases) {
          model.erase(key);
        } else {
          model[key] = value;
        }
      }
      Column k = keys.column(), v = values.column();
      REQUIRE_OK(erases          ? t.erase(table->table, k)
                 : random_() % 2 ? t.put(table->table, k, v)
                                 : t.put_view(table->table, k, v));
    }
  }

  void commit() {
    std::deque<std::pair<Rows, Rows>> views;
    WriteTransaction t = database_->begin();
    stage(t, &any_table(), &views);
    if (random_() % 3 == 0) stage(t, &any_table(), &views);
    REQUIRE_OK(t.commit(static_cast<Durability>(random_() % 3)));
  }

  void abort() {
    std::deque<std::pair<Rows, Rows>> views;
    WriteTransaction t = database_->begin();
    SoakTable copy = any_table();
    stage(t, &copy, &views);
    if (random_() % 2) t.abort();
  }

  void check(SoakTable& t) { expect_equal(database_->snapshot(), t.table, t.model, random_); }

  void keep_snapshot() {
    if (kept_.size() > 5) kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(random_() % 6));
    SoakTable& t = any_table();
    kept_.push_back({database_->snapshot(), t.table, t.model});
  }

  void check_kept() {
    if (kept_.empty()) return;
    Kept& kept = kept_[random_() % kept_.size()];
    expect_equal(kept.snapshot, kept.table, kept.model, random_);
  }

  std::mt19937_64& random_;
  TemporaryDirectory directory_;
  std::vector<std::string> names_;
  std::vector<SoakTable> tables_;
  int next_name_ = 0;
  std::unique_ptr<Database> database_;
  std::vector<Kept> kept_;  // goes before the database's files do
};

TEST_CASE("SoakTest.AnswersAsAMapDoes", "[SoakTest]") {
  std::mt19937_64 random(seed());
  Deadline deadline;
  uint64_t steps = 0;
  while (!deadline.over()) {
    Operations operations(random);
    operations.start();
    for (int i = 0; i < 400 && !deadline.over(); ++i, ++steps) {
      operations.step();
    }
    operations.finish();
  }
  std::printf("%llu operations\n", static_cast<unsigned long long>(steps));
}

// Each writer owns some keys. A commit sets them all to its number; an odd one erases every other
// key as well, so that a snapshot shows of each writer one number and the keys that belong to it.
class Writers {
 public:
  static constexpr int writers = 3, keys = 400;

  static std::string key(int writer, int i) {
    return std::string(1, char('a' + i % 7)) + std::to_string(i) + ":" + std::to_string(writer);
  }

  static Status commit(Database& db, const Table& table, int writer, int number) {
    Rows put, values, erase;
    for (int i = 0; i < keys; ++i) {
      if (number % 2 && i % 2) {
        erase.add(key(writer, i));
      } else {
        put.add(key(writer, i));
        values.add(std::to_string(number));
      }
    }
    WriteTransaction t = db.begin();
    STRIDE_TRY(t.put(table, put.column(), values.column()));
    STRIDE_TRY(t.erase(table, erase.column()));
    return t.commit(static_cast<Durability>(number % 3));
  }
};

// What one snapshot shows of the writers, checked as it is read.
class Sighting {
 public:
  void see(Bytes key, Bytes value) {
    std::string k = text(key);
    size_t writer = static_cast<size_t>(k.back() - '0');
    REQUIRE_MESSAGE(writer < numbers.size(), k);
    int number = std::stoi(text(value));
    if (rows_[writer]++ == 0) numbers[writer] = number;
    REQUIRE_MESSAGE(number == numbers[writer], k);
    REQUIRE_MESSAGE((number % 2 == 0 || std::stoi(k.substr(1)) % 2 == 0), k);
  }
  void expect_whole() const {
    for (size_t w = 0; w < numbers.size(); ++w)
      REQUIRE_MESSAGE(rows_[w] == (numbers[w] % 2 ? Writers::keys / 2 : Writers::keys),
                      "writer " << w);
  }
  std::array<int, Writers::writers> numbers{};

 private:
  std::array<int, Writers::writers> rows_{};
};

Sighting scan(const Snapshot& snapshot, const Table& table, bool reverse) {
  Sighting sighting;
  auto scan = snapshot.scan(table, {.reverse = reverse, .batch_rows = 300});
  CHECK_OK(scan);
  ScanBatch batch;
  std::string last;
  while (scan->next(&batch))
    for (uint64_t i = 0; i < batch.keys.size; ++i) {
      std::string key = text(batch.keys[i]);
      CHECK_MESSAGE((last.empty() || (reverse ? key < last : key > last)),
                    key << " after " << last);
      last = key;
      sighting.see(batch.keys[i], batch.values[i]);
    }
  CHECK_OK(scan->status());
  return sighting;
}

Sighting get_all(const Snapshot& snapshot, const Table& table) {
  Sighting sighting;
  Rows queries;
  for (int w = 0; w < Writers::writers; ++w)
    for (int i = 0; i < Writers::keys; ++i) queries.add(Writers::key(w, i));
  GetResult got;
  Status s = snapshot.get(table, queries.column(), &got);
  CHECK_OK(s);
  Column keys = queries.column();
  for (uint64_t i = 0; i < keys.size; ++i)
    if (got.found[i]) sighting.see(keys[i], got.values[i]);
  return sighting;
}

TEST_CASE("SoakTest.WritersReadersAndCompactionsAtOnce", "[SoakTest]") {
  TemporaryDirectory directory;
  Options options;
  if (seed() % 2) options.memory_limit_bytes = 1;
  auto db = Database::open(directory.path(), options);
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t");
  REQUIRE_OK(table);
  for (int w = 0; w < Writers::writers; ++w) REQUIRE_OK(Writers::commit(**db, *table, w, 0));
  Deadline deadline;
  std::atomic<uint64_t> commits{0}, reads{0};
  std::array<int, Writers::writers> last{};
  TestThreads threads;
  for (int w = 0; w < Writers::writers; ++w)
    threads.start([&, w] {
      for (int n = 1; !threads.stopping(); ++n, ++commits) {
        Status s = Writers::commit(**db, *table, w, n);
        CHECK_OK(s);
        last[static_cast<size_t>(w)] = n;
      }
    });
  for (int r = 0; r < 3; ++r)
    threads.start([&, r] {
      std::array<int, Writers::writers> before{};
      for (; !threads.stopping(); ++reads) {
        Snapshot snapshot = (*db)->snapshot();
        Sighting sighting = r < 2 ? scan(snapshot, *table, r) : get_all(snapshot, *table);
        sighting.expect_whole();
        for (size_t w = 0; w < before.size(); ++w)
          CHECK_MESSAGE(sighting.numbers[w] >= before[w], "writer " << w);
        before = sighting.numbers;
        auto count = snapshot.count(*table);
        CHECK_OK(count);
      }
    });
  threads.start([&] {
    for (int i = 0; !threads.stopping(); ++i) {
      CHECK_OK((*db)->compact());
      CHECK_OK((*db)->create_table("passing"));
      CHECK_OK((*db)->drop_table("passing"));
      std::this_thread::sleep_for(std::chrono::milliseconds(i % 20));
    }
  });
  while (!deadline.over() && !threads.failed())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  threads.join();
  REQUIRE_OK((*db)->close());
  db->reset();
  auto again = Database::open(directory.path(), options);
  REQUIRE_OK(again);
  auto reopened = (*again)->open_table("t");
  Sighting sighting = scan((*again)->snapshot(), *reopened, false);
  sighting.expect_whole();
  CHECK(sighting.numbers == last);
  REQUIRE_OK((*again)->verify());
  std::printf("%llu commits, %llu snapshots read\n", static_cast<unsigned long long>(commits),
              static_cast<unsigned long long>(reads));
}

}  // namespace
}  // namespace stride::test
