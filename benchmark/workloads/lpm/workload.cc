#include "benchmark/workloads/lpm/workload.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "benchmark/harness/device_backend.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/placed_memory.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/peers/route_intervals.h"
#include "benchmark/workloads/lpm/updates.h"
#include "engine/database.h"
#include "engine/prefixes.h"
#include "gpu/backend.h"

namespace stride::benchmark {
namespace {

// Addresses of one kind, and their answers.
struct Queries {
  std::string kind;
  OwnedColumn addresses;
  BulkVector<uint32_t> expected;
};

std::string queries_name(const std::string& addresses) {
  if (addresses == "uniform" || addresses == "table") return addresses;
  return std::filesystem::path(addresses).stem().stem().string();
}

Status wrong_address(const std::string& who, uint64_t i) {
  return Status(StatusCode::corruption,
                "wrong answer: " + who + " of address " + std::to_string(i));
}

// Matches in a loop, on a thread of its own, from its construction until stop().
class MatchLoop {
 public:
  MatchLoop(Database& database, const Table& table, const Queries& queries)
      : thread_([this, &database, table, &queries] { run(database, table, queries); }) {}
  ~MatchLoop() { (void)stop(); }
  MatchLoop(const MatchLoop&) = delete;
  MatchLoop& operator=(const MatchLoop&) = delete;

  // Returns the first failure of a match.
  Status stop() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
    return failure_;
  }
  // After stop().
  uint64_t matched() const { return matched_; }
  double seconds() const { return seconds_; }

 private:
  void run(Database& database, const Table& table, const Queries& queries) {
    constexpr uint64_t batch = 100'000;
    MatchResult result;
    Stopwatch watch;
    uint64_t at = 0;
    do {
      if (at + batch > queries.addresses.rows) at = 0;
      uint64_t n = std::min(batch, queries.addresses.rows);
      failure_ = database.snapshot().match(table, queries.addresses.view().slice(at, n), &result);
      matched_ += n;
      at += batch;
    } while (failure_.ok() && !done_);
    seconds_ = watch.seconds();
  }

  std::atomic<bool> done_{false};
  Status failure_;
  uint64_t matched_ = 0;
  double seconds_ = 0;
  std::thread thread_;  // last, because it uses the others
};

class LpmTable {
 public:
  LpmTable(const LpmOptions& options, const RouteTable& table, const Progress& progress)
      : options_(options),
        table_(table),
        progress_(progress),
        intervals_(table.keys.view(), table.address_bits) {}

  Status run(std::vector<ResultRow>* rows) {
    STRIDE_TRY(make_queries());
    std::vector<unsigned> threads{1};
    if (options_.threads > 1) threads.push_back(options_.threads);
    for (unsigned n : threads) STRIDE_TRY(run_index(n, rows));
    for (unsigned n : threads) STRIDE_TRY(run_intervals(n, rows));
    STRIDE_TRY(run_device(rows));
    return run_database(rows);
  }

 private:
  Status make_queries();
  Status run_index(unsigned threads, std::vector<ResultRow>* rows);
  Status run_intervals(unsigned threads, std::vector<ResultRow>* rows);
  Status run_device(std::vector<ResultRow>* rows);
  // A database with the table's prefixes in one commit.
  struct Loaded {
    std::optional<ScratchDirectory> scratch;
    std::unique_ptr<Database> database;
    Table table;
  };
  Status load(Options options, ResultRow row, Loaded* out, std::vector<ResultRow>* rows);
  Status run_device_database(const std::shared_ptr<Backend>& backend, ResultRow row,
                             std::vector<ResultRow>* rows);
  Status check_ranks(const std::string& who, const Queries& queries,
                     std::span<const uint32_t> ranks) const;
  Status run_database(std::vector<ResultRow>* rows);
  Status match_all(Database& database, const Table& table, TimedPhases* phases);
  Status update(Database& database, const Table& table, std::vector<ResultRow>* rows);
  // Commits until the time is over or there are so many, and no faster than the options say.
  Status commit_on_time(const Updates& updates, uint64_t max_updates, Database& database,
                        const Table& table, uint64_t* committed, double* seconds) const;
  Status check_updated(Database& database, const Table& table,
                       const std::map<std::string, std::string>& updated);
  ResultRow prototype(const std::string& engine, const std::string& configuration) const;

  const LpmOptions& options_;
  const RouteTable& table_;
  const Progress& progress_;
  RouteIntervals intervals_;
  std::vector<Queries> queries_;
};

ResultRow LpmTable::prototype(const std::string& engine, const std::string& configuration) const {
  ResultRow row;
  row.workload = "lpm";
  row.engine = engine;
  row.configuration = configuration;
  row.machine = this_machine().to_string();
  row.backend = "host";
  row.is_database = false;
  row.raw_bytes = table_.keys.data.size() + table_.values.data.size();
  row.numbers = {{"prefixes", static_cast<double>(table_.size())},
                 {"boundaries", static_cast<double>(intervals_.size())},
                 {"seed", static_cast<double>(options_.seed)}};
  row.texts = {{"table", table_.name}};
  return row;
}

Status LpmTable::make_queries() {
  progress_.show(table_.name + " addresses");
  Parallel parallel(options_.threads);
  for (const std::string& kind : options_.addresses) {
    Queries queries{queries_name(kind), {}, {}};
    if (kind == "uniform") {
      queries.addresses = uniform_addresses(table_, options_.queries, options_.seed);
    } else if (kind == "table") {
      queries.addresses = table_addresses(table_, options_.queries, options_.seed);
    } else {
      Result<OwnedColumn> addresses = file_addresses(table_, kind, options_.queries);
      if (!addresses.ok()) return addresses.status();
      queries.addresses = std::move(*addresses);
    }
    if (queries.addresses.rows == 0) continue;
    queries.expected.resize(queries.addresses.rows);
    intervals_.match(queries.addresses.view(), &parallel, queries.expected);
    queries_.push_back(std::move(queries));
  }
  return {};
}

Status LpmTable::run_index(unsigned threads, std::vector<ResultRow>* rows) {
  std::unique_ptr<Backend> backend = Backend::host(threads);
  TimedPhases phases(options_.timing, prototype("stride", threads_name(threads)), table_.name,
                     &progress_);
  std::vector<std::byte> image;
  STRIDE_TRY(phases.measure("build", table_.size(), timed([&] {
                              return backend->longest_prefix().build_matches(
                                  table_.packed_keys(), table_.address_bits, &image);
                            })));
  MatchView view{image.data(), image.size()};
  for (const Queries& queries : queries_) {
    BulkVector<uint32_t> ranks(queries.addresses.rows);
    STRIDE_TRY(phases.measure("match_" + queries.kind, queries.addresses.rows, timed([&] {
                                return backend->longest_prefix().longest_match(
                                    view, queries.addresses.view(), ranks);
                              })));
    STRIDE_TRY(check_ranks("the index", queries, ranks));
  }
  for (ResultRow& row : phases.rows()) {
    row.numbers["threads"] = threads;
    row.numbers["bytes_per_prefix"] =
        static_cast<double>(image.size()) / static_cast<double>(table_.size());
    rows->push_back(std::move(row));
  }
  return {};
}

Status LpmTable::check_ranks(const std::string& who, const Queries& queries,
                             std::span<const uint32_t> ranks) const {
  auto wrong = std::mismatch(ranks.begin(), ranks.end(), queries.expected.begin()).first;
  if (wrong == ranks.end()) return {};
  return wrong_address(who, static_cast<uint64_t>(wrong - ranks.begin()));
}

Status LpmTable::run_device(std::vector<ResultRow>* rows) {
  Result<std::unique_ptr<Backend>> made = device_backend(options_.backend, options_.threads);
  if (!made.ok()) return made.status();
  if (*made == nullptr) return {};
  std::shared_ptr<Backend> shared = std::move(*made);
  Backend& backend = *shared;
  std::unique_ptr<Backend> host = Backend::host(1);
  ResultRow row = prototype("stride", "");
  row.backend = backend.name();
  row.numbers["threads"] = options_.threads;
  std::vector<std::byte> image;
  for (const Side& side : sides) {
    row.configuration = side.name;
    TimedPhases phases(options_.timing, row, table_.name + " " + side.name, &progress_);
    if (&side == sides) {
      STRIDE_TRY(phases.measure("build", table_.size(), timed([&] {
                                  return backend.longest_prefix().build_matches(
                                      table_.packed_keys(), table_.address_bits, &image);
                                })));
      BackendLimits limits;
      STRIDE_TRY(backend.measure_limits(image.size(), &limits));
      row.numbers["bytes_per_prefix"] =
          static_cast<double>(image.size()) / static_cast<double>(table_.size());
      // Both ways are busy until the ranks are back; addresses are no shorter.
      double in = address_bytes(table_.address_bits), out = sizeof(uint32_t);
      row.numbers["bus_addresses_per_second"] = 1 / (out / limits.bus_both_bytes_per_second +
                                                     (in - out) / limits.bus_in_bytes_per_second);
      row.numbers["gathers_per_second"] = limits.gathers_per_second;
    }
    MatchView view{image.data(), image.size()};
    auto resident = backend.longest_prefix().make_resident(view);
    if (!resident.ok()) return resident.status();
    view.resident = resident->get();
    for (const Queries& queries : queries_) {
      KeyColumn addresses = queries.addresses.view();
      auto there = side.allocate(backend, *host, addresses.bytes());
      if (!there.ok()) return there.status();
      auto ranks = side.allocate(backend, *host, addresses.size * sizeof(uint32_t));
      if (!ranks.ok()) return ranks.status();
      STRIDE_TRY(backend.copy((*there)->data(), addresses.data, addresses.bytes()));
      addresses.data = (*there)->data();
      std::span<uint32_t> out(reinterpret_cast<uint32_t*>((*ranks)->data()), addresses.size);
      STRIDE_TRY(phases.measure(
          "match_" + queries.kind, addresses.size,
          timed([&] { return backend.longest_prefix().longest_match(view, addresses, out); })));
      BulkVector<uint32_t> found(addresses.size);
      STRIDE_TRY(backend.copy(found.data(), out.data(), out.size_bytes()));
      STRIDE_TRY(check_ranks(side.name, queries, found));
    }
    for (ResultRow& r : phases.rows()) {
      r.numbers = row.numbers;
      rows->push_back(std::move(r));
    }
  }
  return run_device_database(shared, row, rows);
}

Status LpmTable::run_intervals(unsigned threads, std::vector<ResultRow>* rows) {
  Parallel parallel(threads);
  TimedPhases phases(options_.timing, prototype("binary search", threads_name(threads)),
                     table_.name, &progress_);
  for (const Queries& queries : queries_) {
    BulkVector<uint32_t> ranks(queries.addresses.rows);
    STRIDE_TRY(phases.measure("match_" + queries.kind, queries.addresses.rows, timed([&] {
                                intervals_.match(queries.addresses.view(), &parallel, ranks);
                                return Status();
                              })));
  }
  for (ResultRow& row : phases.rows()) {
    row.numbers["threads"] = threads;
    rows->push_back(std::move(row));
  }
  return {};
}

Status LpmTable::load(Options options, ResultRow row, Loaded* out, std::vector<ResultRow>* rows) {
  Result<ScratchDirectory> scratch = ScratchDirectory::create(options_.directory, "stride-lpm");
  if (!scratch.ok()) return scratch.status();
  out->scratch.emplace(std::move(*scratch));
  options.threads = options_.threads;
  auto database = Database::open(out->scratch->path() + "/db", options);
  if (!database.ok()) return database.status();
  out->database = std::move(*database);
  auto table = out->database->create_table(table_.name, {.address_bits = table_.address_bits});
  if (!table.ok()) return table.status();
  out->table = *table;
  row.backend = out->database->backend_name();

  progress_.show(table_.name + " database load");
  Stopwatch watch;
  WriteTransaction load = out->database->begin();
  STRIDE_TRY(load.put_view(out->table, table_.keys.view(), table_.values.view()));
  STRIDE_TRY(load.commit());
  row.phase = "load";
  row.records = table_.size();
  row.seconds = watch.seconds();
  row.bytes_on_disk = out->database->size_bytes();
  rows->push_back(std::move(row));
  return {};
}

Status LpmTable::run_database(std::vector<ResultRow>* rows) {
  Options options;
  options.backend = options_.backend;
  ResultRow row = prototype("stride", "database");
  row.numbers["threads"] = options_.threads;
  row.is_database = true;
  Loaded loaded;
  STRIDE_TRY(load(options, row, &loaded, rows));
  row.backend = loaded.database->backend_name();
  TimedPhases phases(options_.timing, row, table_.name + " database", &progress_);
  STRIDE_TRY(match_all(*loaded.database, loaded.table, &phases));
  std::move(phases.rows().begin(), phases.rows().end(), std::back_inserter(*rows));
  if (options_.update_rate && !queries_.empty())
    STRIDE_TRY(update(*loaded.database, loaded.table, rows));
  return loaded.database->close();
}

// Addresses and locations in the memory of the device that the database uses.
Status LpmTable::run_device_database(const std::shared_ptr<Backend>& backend, ResultRow row,
                                     std::vector<ResultRow>* rows) {
  Options options;
  options.shared_backend = backend;
  row.configuration = "database, device memory";
  row.is_database = true;
  Loaded loaded;
  STRIDE_TRY(load(options, row, &loaded, rows));
  TimedPhases phases(options_.timing, row, table_.name + " database on the device", &progress_);
  Snapshot snapshot = loaded.database->snapshot();
  for (const Queries& queries : queries_) {
    KeyColumn addresses = queries.addresses.view();
    auto there = backend->allocate(addresses.bytes());
    if (!there.ok()) return there.status();
    auto room = backend->allocate(addresses.size * sizeof(Location));
    if (!room.ok()) return room.status();
    STRIDE_TRY(backend->copy((*there)->data(), addresses.data, addresses.bytes()));
    addresses.data = (*there)->data();
    auto* out = reinterpret_cast<Location*>((*room)->data());
    STRIDE_TRY(phases.measure("match_" + queries.kind, addresses.size, timed([&] {
                                return snapshot.match_device(loaded.table, addresses, out, nullptr);
                              })));
    BulkVector<Location> found(addresses.size);
    STRIDE_TRY(backend->copy(found.data(), out, found.size() * sizeof(Location)));
    BulkVector<uint32_t> ranks(addresses.size);
    for (uint64_t i = 0; i < ranks.size(); ++i) ranks[i] = found[i].rank;
    STRIDE_TRY(check_ranks("match_device", queries, ranks));
  }
  std::move(phases.rows().begin(), phases.rows().end(), std::back_inserter(*rows));
  return {};
}

Status LpmTable::match_all(Database& database, const Table& table, TimedPhases* phases) {
  Snapshot snapshot = database.snapshot();
  for (const Queries& queries : queries_) {
    MatchResult result;
    STRIDE_TRY(phases->measure("match_" + queries.kind, queries.addresses.rows, timed([&] {
                                 return snapshot.match(table, queries.addresses.view(), &result);
                               })));
    // The table has one segment, so that a rank there is the prefix's.
    for (uint64_t i = 0; i < queries.addresses.rows; ++i) {
      if (result.locations[i].rank != queries.expected[i]) return wrong_address("match", i);
    }
  }
  return {};
}

Status LpmTable::update(Database& database, const Table& table, std::vector<ResultRow>* rows) {
  auto add = [&](const std::string& phase, uint64_t records, double took) {
    ResultRow row = prototype("stride", "database");
    row.backend = database.backend_name();
    row.is_database = true;
    row.numbers["threads"] = options_.threads;
    row.phase = phase;
    row.records = records;
    row.seconds = took;
    rows->push_back(std::move(row));
  };
  progress_.show(table_.name + " matches alone");
  MatchLoop alone(database, table, queries_.back());
  std::this_thread::sleep_for(std::chrono::duration<double>(options_.update_seconds / 2));
  STRIDE_TRY(alone.stop());
  add("match_alone", alone.matched(), alone.seconds());

  progress_.show(table_.name + " updates");
  auto max_updates =
      static_cast<uint64_t>(options_.update_seconds * static_cast<double>(options_.update_rate));
  Updates updates(table_, max_updates + options_.update_batch, options_.seed);
  MatchLoop meanwhile(database, table, queries_.back());
  uint64_t committed = 0;
  double took = 0;
  Status updated = commit_on_time(updates, max_updates, database, table, &committed, &took);
  Status matched = meanwhile.stop();
  STRIDE_TRY(updated);
  STRIDE_TRY(matched);
  add("update", committed, took);
  add("match_meanwhile", meanwhile.matched(), meanwhile.seconds());
  return check_updated(database, table, updates.routes(committed));
}

Status LpmTable::commit_on_time(const Updates& updates, uint64_t max_updates, Database& database,
                                const Table& table, uint64_t* committed, double* seconds) const {
  Stopwatch watch;
  Status status;
  do {
    double due = static_cast<double>(*committed) / static_cast<double>(options_.update_rate);
    double early = due - watch.seconds();
    if (early > 0) std::this_thread::sleep_for(std::chrono::duration<double>(early));
    status =
        updates.commit(database, table, *committed, options_.update_batch, options_.durability);
    *committed += options_.update_batch;
  } while (status.ok() && watch.seconds() < options_.update_seconds && *committed < max_updates);
  *seconds = watch.seconds();
  return status;
}

Status LpmTable::check_updated(Database& database, const Table& table,
                               const std::map<std::string, std::string>& updated) {
  std::vector<const std::pair<const std::string, std::string>*> routes;
  for (const auto& route : updated) routes.push_back(&route);
  Parallel parallel(options_.threads);
  OwnedColumn keys =
      make_column(prefix_key_width(table_.address_bits), routes.size(), &parallel,
                  [&](uint64_t i) { return as_bytes(std::string_view(routes[i]->first)); });
  RouteIntervals intervals(keys.view(), table_.address_bits);
  Snapshot snapshot = database.snapshot();
  for (const Queries& queries : queries_) {
    BulkVector<uint32_t> ranks(queries.addresses.rows);
    intervals.match(queries.addresses.view(), &parallel, ranks);
    MatchResult result;
    STRIDE_TRY(snapshot.match(table, queries.addresses.view(), &result));
    for (uint64_t i = 0; i < ranks.size(); ++i) {
      bool found = ranks[i] != Location::absent;
      if (result.found[i] != found) return wrong_address("match after updates", i);
      if (found && (as_text(result.prefix(i)) != routes[ranks[i]]->first ||
                    as_text(result.value(i)) != routes[ranks[i]]->second)) {
        return wrong_address("match after updates", i);
      }
    }
  }
  return {};
}

}  // namespace

Status run_lpm(const LpmOptions& options, const Progress& progress, std::vector<ResultRow>* rows) {
  progress.show("reading prefixes");
  Result<std::vector<RouteTable>> tables = read_routes(options.prefixes);
  if (!tables.ok()) return tables.status();
  for (const RouteTable& table : *tables) {
    STRIDE_TRY(LpmTable(options, table, progress).run(rows));
  }
  return {};
}

}  // namespace stride::benchmark
