#include "tests/engine/transaction/histories.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <unordered_map>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

std::string name_of_list(const ListKey& key) {
  return "key '" + key.second + "' of table " + std::to_string(key.first);
}

// Nodes are transactions, and moments at which one ended, so that what ended before what began
// takes edges in proportion to the transactions.
class DependencyGraph {
 public:
  DependencyGraph(const std::vector<RecordedTransaction>& committed,
                  const std::map<ListKey, List>& last)
      : committed_(committed), last_(last), edges_(committed.size() * 2) {
    for (uint32_t i = 0; i < committed.size(); ++i) nodes_[committed[i].number] = i;
  }

  std::string check() {
    if (std::string wrong = check_appends(); !wrong.empty()) return wrong;
    for (uint32_t i = 0; i < committed_.size(); ++i)
      for (const auto& [key, list] : committed_[i].read)
        if (std::string wrong = add_read(i, key, list); !wrong.empty()) return wrong;
    add_real_time();
    return find_cycle();
  }

 private:
  // Each append of a committed transaction is there once, and nothing else.
  std::string check_appends() {
    size_t appends = 0, found = 0;
    for (const auto& t : committed_) appends += t.appended.size();
    for (const auto& [key, list] : last_) {
      for (size_t i = 0; i < list.size(); ++i) {
        auto writer = nodes_.find(list[i]);
        if (writer == nodes_.end())
          return name_of_list(key) + " has an append of a transaction that was not committed";
        const auto& appended = committed_[writer->second].appended;
        if (std::count(appended.begin(), appended.end(), key) != 1)
          return name_of_list(key) + " has an append that was not made";
        if (std::count(list.begin(), list.end(), list[i]) != 1)
          return name_of_list(key) + " has an append twice";
        if (i > 0) add_edge(nodes_.at(list[i - 1]), writer->second);
        ++found;
      }
    }
    return found == appends ? "" : std::to_string(appends - found) + " appends are lost";
  }

  std::string add_read(uint32_t reader, const ListKey& key, const List& list) {
    auto found = last_.find(key);
    const List nothing;
    const List& last = found == last_.end() ? nothing : found->second;
    if (list.size() > last.size() || !std::equal(list.begin(), list.end(), last.begin()))
      return "transaction " + std::to_string(committed_[reader].number) + " has read of " +
             name_of_list(key) + " what is no beginning of its last list";
    if (!list.empty()) add_edge(nodes_.at(list.back()), reader);
    if (list.size() < last.size()) add_edge(reader, nodes_.at(last[list.size()]));
    return "";
  }

  void add_edge(uint32_t before, uint32_t after) {
    if (before != after) edges_[before].push_back(after);
  }

  void add_real_time() {
    const auto n = static_cast<uint32_t>(committed_.size());
    std::vector<std::pair<uint64_t, uint32_t>> ends;
    for (uint32_t i = 0; i < n; ++i) ends.emplace_back(committed_[i].end, i);
    std::sort(ends.begin(), ends.end());
    for (uint32_t i = 0; i < n; ++i) {
      add_edge(ends[i].second, n + i);
      if (i > 0) add_edge(n + i - 1, n + i);
      auto later = std::lower_bound(ends.begin(), ends.end(), std::pair(committed_[i].begin, 0U));
      if (later != ends.begin()) add_edge(n + static_cast<uint32_t>(later - ends.begin()) - 1, i);
    }
  }

  // Takes nodes away that nothing comes before (A. B. Kahn, 1962). What is left has a cycle.
  std::string find_cycle() const {
    std::vector<uint32_t> before(edges_.size()), ready;
    for (const auto& after : edges_)
      for (uint32_t node : after) ++before[node];
    for (uint32_t i = 0; i < before.size(); ++i)
      if (before[i] == 0) ready.push_back(i);
    size_t taken = 0;
    for (; !ready.empty(); ++taken) {
      const uint32_t node = ready.back();
      ready.pop_back();
      for (uint32_t after : edges_[node])
        if (--before[after] == 0) ready.push_back(after);
    }
    if (taken == edges_.size()) return "";
    std::string cycle = "a cycle is among the transactions";
    for (uint32_t i = 0; i < committed_.size() && cycle.size() < 200; ++i)
      if (before[i] > 0) cycle += " " + std::to_string(committed_[i].number);
    return cycle;
  }

  const std::vector<RecordedTransaction>& committed_;
  const std::map<ListKey, List>& last_;
  std::vector<std::vector<uint32_t>> edges_;
  std::unordered_map<uint32_t, uint32_t> nodes_;  // by the transaction's number
};

List list_in(Bytes value) {
  List list(value.size() / sizeof(uint32_t));
  std::memcpy(list.data(), value.data(), value.size());
  return list;
}

Bytes bytes_of_list(const List& list) {
  return as_bytes(
      std::string_view(reinterpret_cast<const char*>(list.data()), list.size() * sizeof list[0]));
}

constexpr uint32_t tables_of_history = 2;

// One thread's transactions.
class HistoryWorker {
 public:
  HistoryWorker(Database* db, const std::vector<Table>& tables, uint32_t keys,
                std::atomic<uint64_t>* clock, uint64_t seed)
      : db_(*db), tables_(tables), keys_(keys), clock_(*clock), random_(seed) {}

  void run_one(uint32_t number) {
    now_ = {};
    now_.number = number;
    now_.begin = clock_++;
    Transaction t = db_.transaction();
    own_.clear();
    const uint64_t steps = 1 + random_() % 6;
    for (uint64_t i = 0; i < steps; ++i) step(t);
    if (random_() % 16 == 0) return t.abort();
    const Status s = t.commit();
    now_.end = clock_++;
    if (s.ok()) {
      // One that has only read took its snapshot's moment.
      history.committed.push_back(std::move(now_));
    } else {
      REQUIRE_MESSAGE(s.code() == StatusCode::conflict, s.to_string());
      ++history.conflicts;
    }
  }

  History history;

 private:
  ListKey any_key() {
    const auto key = static_cast<uint32_t>(random_() % keys_);
    return {static_cast<uint32_t>(random_() % tables_of_history), name(key)};
  }
  // Names sort as their numbers do, that of keys_ included.
  static std::string name(uint32_t i) {
    char name[16];
    std::snprintf(name, sizeof name, "k%05u", i);
    return name;
  }

  void step(Transaction& t) {
    switch (random_() % 8) {
      case 0:
        return read_range(t);
      case 1:
        return read_bound(t);
      case 2:
        return read_batch(t);
      case 3:
      case 4:
        return read_one(t, any_key());
      default:
        return append(t, any_key());
    }
  }

  // The list with this transaction's own append, which must be there if it was made.
  void note(const ListKey& key, List list) {
    const bool has_own = std::count(own_.begin(), own_.end(), key) > 0;
    REQUIRE_MESSAGE(has_own == (!list.empty() && list.back() == now_.number), name_of_list(key));
    if (has_own) list.pop_back();
    auto [at, is_new] = now_.read.emplace(key, list);
    REQUIRE_MESSAGE((is_new || at->second == list), "another read of " << name_of_list(key));
  }

  void read_one(Transaction& t, const ListKey& key) {
    auto value = t.get(tables_[key.first], key.second);
    REQUIRE_OK(value);
    note(key, *value ? list_in(**value) : List());
  }

  void append(Transaction& t, const ListKey& key) {
    if (std::count(own_.begin(), own_.end(), key) > 0) return read_one(t, key);
    read_one(t, key);
    List list = now_.read.at(key);
    list.push_back(now_.number);
    REQUIRE_OK(t.put(tables_[key.first], as_bytes(key.second), bytes_of_list(list)));
    own_.push_back(key);
    now_.appended.push_back(key);
  }

  void read_batch(Transaction& t) {
    const auto table = static_cast<uint32_t>(random_() % tables_of_history);
    Rows queries;
    // Sometimes more than are looked for one by one.
    std::vector<ListKey> keys(1 + random_() % (random_() % 8 ? 5 : 100));
    for (ListKey& key : keys) {
      key = any_key();
      key.first = table;
      queries.add(key.second);
    }
    GetResult got;
    REQUIRE_OK(t.get(tables_[table], queries.column(), &got));
    for (size_t i = 0; i < keys.size(); ++i)
      note(keys[i], got.found[i] ? list_in(got.values[i]) : List());
  }

  // Rows in the range that were not there are read too. A scan may end early.
  void read_range(Transaction& t) {
    const auto table = static_cast<uint32_t>(random_() % tables_of_history);
    const auto from = static_cast<uint32_t>(random_() % keys_);
    const uint32_t to = std::min(keys_, from + static_cast<uint32_t>(random_() % 12));
    ScanOptions options{.from = name(from), .to = name(to)};
    options.batch_rows = 1 + random_() % 5;
    auto scan = t.scan(tables_[table], options);
    REQUIRE_OK(scan);
    uint64_t batches = random_() % 2 ? 1 : ~uint64_t{0};
    uint32_t next = from;
    ScanBatch batch;
    for (; batches > 0 && scan->next(&batch); --batches)
      for (uint64_t i = 0; i < batch.keys.size; ++i, ++next) {
        for (; text(batch.keys[i]) != name(next); ++next) note_nothing(table, next, to);
        note({table, name(next)}, list_in(batch.values[i]));
      }
    REQUIRE_OK(scan->status());
    if (batches > 0)
      for (; next < to; ++next) note_nothing(table, next, to);
  }

  void note_nothing(uint32_t table, uint32_t key, uint32_t end) {
    REQUIRE_MESSAGE(key < end, "a key that is not in the range");
    note({table, name(key)}, {});
  }

  void read_bound(Transaction& t) {
    const auto table = static_cast<uint32_t>(random_() % tables_of_history);
    auto next = static_cast<uint32_t>(random_() % keys_);
    Rows queries;
    queries.add(name(next));
    LowerBoundResult bound;
    REQUIRE_OK(t.lower_bound(tables_[table], queries.column(), &bound));
    for (; next < keys_ && (!bound.found[0] || text(bound.keys[0]) != name(next)); ++next)
      note({table, name(next)}, {});
    if (bound.found[0] && next < keys_) note({table, name(next)}, list_in(bound.values[0]));
  }

  Database& db_;
  const std::vector<Table>& tables_;
  const uint32_t keys_;
  std::atomic<uint64_t>& clock_;
  std::mt19937_64 random_;
  RecordedTransaction now_;
  std::vector<ListKey> own_;
};

// Moves rows: merges, and commits that are too large for the log, of keys behind all lists.
void move_rows_on(Database* db, const std::vector<Table>& tables, const TestThreads& threads) {
  Rows keys, values;
  for (int i = 0; i < 4000; ++i) {
    keys.add("~" + std::to_string(i));
    values.add(std::string(40, 'v'));
  }
  for (int round = 0; !threads.stopping(); ++round) {
    if (round % 4 == 0) CHECK_OK(db->compact());
    WriteTransaction t = db->begin();
    CHECK_OK(t.put(tables[round % tables_of_history], keys.column(), values.column()));
    CHECK_OK(t.commit());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void read_last(Database* db, const std::vector<Table>& tables, std::map<ListKey, List>* last) {
  const Snapshot snapshot = db->snapshot();
  for (uint32_t table = 0; table < tables_of_history; ++table) {
    auto scan = snapshot.scan(tables[table], {.from = "k", .to = "l"});
    REQUIRE_OK(scan);
    for (ScanBatch batch; scan->next(&batch);)
      for (uint64_t i = 0; i < batch.keys.size; ++i)
        (*last)[{table, text(batch.keys[i])}] = list_in(batch.values[i]);
    REQUIRE_OK(scan->status());
  }
}

}  // namespace

std::string check_history(const std::vector<RecordedTransaction>& committed,
                          const std::map<ListKey, List>& last) {
  return DependencyGraph(committed, last).check();
}

History run_history(const HistoryOptions& options, uint64_t seed) {
  MemoryFileSystem files;
  Options open{.durability = Durability::none, .threads = 2};
  open.file_system = &files;
  open.memtable_bytes = options.memtable_bytes;
  auto db = std::move(*Database::open("/db", open));
  std::vector<Table> tables;
  for (const char* name : {"a", "b"}) tables.push_back(*db->create_table(name));
  std::atomic<uint64_t> clock{1};
  std::vector<HistoryWorker> workers;
  for (uint32_t i = 0; i < options.threads; ++i)
    workers.emplace_back(db.get(), tables, options.keys, &clock, seed + i);
  TestThreads mover, threads;
  mover.start([&] { move_rows_on(db.get(), tables, mover); });
  for (uint32_t i = 0; i < options.threads; ++i)
    threads.start([&, i] {
      for (uint32_t n = 0; n < options.transactions; ++n)
        workers[i].run_one(1 + i * options.transactions + n);
    });
  threads.join();
  mover.join();
  History all;
  for (HistoryWorker& worker : workers) {
    all.conflicts += worker.history.conflicts;
    std::move(worker.history.committed.begin(), worker.history.committed.end(),
              std::back_inserter(all.committed));
  }
  read_last(db.get(), tables, &all.last);
  return all;
}

}  // namespace stride::test
