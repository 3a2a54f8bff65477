#include "benchmark/workloads/commits/workload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/line_plot.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/harness/stopwatch.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

constexpr uint32_t commit_key_bytes = 16;

uint64_t mix(uint64_t n) {
  n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9;
  n = (n ^ n >> 27) * 0x94D049BB133111EB;
  return n ^ n >> 31;
}

// Record `number` of a run: a random key, and a value that says which it is.
struct CommitRecord {
  CommitRecord(uint64_t seed, uint64_t number, uint32_t value_bytes) : value(value_bytes, 'v') {
    const uint64_t words[2] = {mix(seed + number), mix(~number)};
    std::memcpy(key, words, sizeof key);
    std::memcpy(value.data(), &number, std::min<size_t>(sizeof number, value_bytes));
  }
  Bytes key_bytes() const { return {reinterpret_cast<const std::byte*>(key), sizeof key}; }
  char key[commit_key_bytes];
  std::string value;
};

class CommitsRun {
 public:
  CommitsRun(const CommitsOptions& options, const SmallStoreConfiguration& store, unsigned threads,
             const Progress& progress, std::vector<ResultRow>* rows)
      : options_(options), store_(store), threads_(threads), progress_(progress), rows_(rows) {}

  Status run() {
    Result<ScratchDirectory> directory =
        ScratchDirectory::create(options_.directory, store_.name());
    if (!directory.ok()) return directory.status();
    SmallStoreSettings settings;
    settings.directory = directory->path();
    settings.durability = options_.durability;
    settings.threads = threads_;
    settings.max_bytes = options_.records * (commit_key_bytes + options_.value_bytes);
    std::unique_ptr<SmallStore> store = store_.make(settings);
    STRIDE_TRY(store->open());
    const size_t first_row = rows_->size();
    STRIDE_TRY(put(*store));
    STRIDE_TRY(get(*store, "get"));
    STRIDE_TRY(reopen(*store));
    STRIDE_TRY(store->close());
    for (size_t i = first_row; i < rows_->size(); ++i)
      (*rows_)[i].bytes_on_disk = directory->bytes();
    return {};
  }

 private:
  ResultRow row(const std::string& phase, uint64_t records, double seconds) const {
    ResultRow row;
    row.workload = "commits";
    row.engine = store_.engine;
    row.configuration = store_.configuration;
    row.backend = "host";
    row.phase = phase + "_" + std::to_string(threads_);
    row.records = records;
    row.seconds = seconds;
    row.machine = this_machine().to_string();
    row.raw_bytes = written_ * (commit_key_bytes + options_.value_bytes);
    row.numbers = {{"threads", threads_},
                   {"value_bytes", options_.value_bytes},
                   {"seed", static_cast<double>(options_.seed)}};
    return row;
  }

  // Calls work(n) for n from 0 up on all threads, each number once, until it has been called so
  // often or the time is up. Adds a row with how long the calls took.
  template <class Work>
  Status measure(const std::string& phase, uint64_t calls, const Work& work, uint64_t* done) {
    progress_.show(store_.name() + " " + phase + ", " + std::to_string(threads_) + " threads");
    std::atomic<uint64_t> next{0};
    std::atomic<bool> failed{false};
    std::vector<std::vector<float>> times(threads_);  // in us, by thread
    std::vector<Status> results(threads_);
    Stopwatch watch;
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads_; ++t)
      workers.emplace_back([&, t] {
        while (!failed && watch.seconds() < options_.seconds) {
          const uint64_t n = next.fetch_add(1, std::memory_order_relaxed);
          if (n >= calls) break;
          Stopwatch call;
          results[t] = work(n);
          times[t].push_back(static_cast<float>(call.seconds() * 1e6));
          if (!results[t].ok()) failed = true;
        }
      });
    for (std::thread& worker : workers) worker.join();
    const double seconds = watch.seconds();
    for (Status& result : results) STRIDE_TRY(std::move(result));
    std::vector<float> all;
    for (const auto& of_thread : times) all.insert(all.end(), of_thread.begin(), of_thread.end());
    *done = all.size();
    ResultRow measured = row(phase, all.size(), seconds);
    auto add = [&](const char* name, double share) {
      const auto at = static_cast<ptrdiff_t>(share * static_cast<double>(all.size() - 1));
      std::nth_element(all.begin(), all.begin() + at, all.end());
      measured.numbers[name] = all[static_cast<size_t>(at)];
    };
    if (!all.empty()) {
      add("p50_us", 0.5);
      add("p99_us", 0.99);
      add("max_us", 1);
    }
    rows_->push_back(std::move(measured));
    return {};
  }

  Status put(SmallStore& store) {
    return measure(
        "put", options_.records,
        [&](uint64_t n) {
          CommitRecord record(options_.seed, n, options_.value_bytes);
          return store.put(record.key_bytes(), as_bytes(record.value));
        },
        &written_);
  }

  Status get(SmallStore& store, const std::string& phase) {
    uint64_t read = 0;
    return measure(
        phase, options_.records,
        [&](uint64_t n) -> Status {
          CommitRecord record(options_.seed, mix(n) % written_, options_.value_bytes);
          std::string value;
          STRIDE_TRY(store.get(record.key_bytes(), &value));
          if (value == record.value) return {};
          return Status(StatusCode::corruption, "wrong answer: another value was written");
        },
        &read);
  }

  Status reopen(SmallStore& store) {
    Stopwatch watch;
    STRIDE_TRY(store.close());
    STRIDE_TRY(store.open());
    rows_->push_back(row("reopen", written_, watch.seconds()));
    for (uint64_t n = 0; n < std::min<uint64_t>(written_, 1000); ++n) {
      CommitRecord record(options_.seed, mix(n) % written_, options_.value_bytes);
      std::string value;
      STRIDE_TRY(store.get(record.key_bytes(), &value));
      if (value != record.value)
        return Status(StatusCode::corruption, "wrong answer: a record is lost");
    }
    return {};
  }

  const CommitsOptions& options_;
  const SmallStoreConfiguration& store_;
  const unsigned threads_;
  const Progress& progress_;
  std::vector<ResultRow>* const rows_;
  uint64_t written_ = 0;
};

}  // namespace

Status run_commits(const CommitsOptions& options, const Progress& progress,
                   std::vector<ResultRow>* rows) {
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat)
    for (unsigned threads : options.threads)
      for (const SmallStoreConfiguration& store : options.stores)
        if (Status s = CommitsRun(options, store, threads, progress, rows).run(); !s.ok())
          return explain(store.name(), s);
  return {};
}

std::string latency_table(const std::vector<ResultRow>& rows) {
  TextTable table;
  table.add({"one call, us", "phase", "p50", "p99", "max"});
  table.add_rule();
  for (const ResultRow& row : medians(rows))
    if (row.numbers.contains("p50_us"))
      table.add({row.engine_name(), row.phase, three_digits(row.number_of("p50_us")),
                 three_digits(row.number_of("p99_us")), three_digits(row.number_of("max_us"))});
  return table.to_string();
}

std::string threads_svg(const std::string& title, const std::vector<ResultRow>& rows) {
  std::vector<LinePanel> panels;
  for (const std::string& phase : {std::string("put"), std::string("get")}) {
    LinePanel& panel =
        panels.emplace_back(LinePanel{phase, "threads", "thousand calls a second", {}});
    for (const ResultRow& row : rows) {
      if (!row.phase.starts_with(phase)) continue;
      auto line = std::ranges::find(panel.series, row.engine_name(), &LineSeries::name);
      if (line == panel.series.end())
        line = panel.series.insert(panel.series.end(), {row.engine_name(), row.engine, {}});
      line->points.emplace_back(row.number_of("threads"), row.records_per_second() / 1e3);
    }
    for (LineSeries& line : panel.series) std::ranges::sort(line.points);
  }
  return line_plot_svg(title, this_machine().to_string(), panels);
}

}  // namespace stride::benchmark
