#include "benchmark/workloads/ycsb/workload.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/process_usage.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/harness/stopwatch.h"

namespace stride::benchmark {
namespace {

// One mix with one number of threads.
struct YcsbCase {
  const YcsbMix& mix;
  unsigned threads;
  unsigned repeat;

  std::string phase() const { return mix.name + "_" + std::to_string(threads); }
};

// More inserts than any store takes in that time.
constexpr double max_inserts_per_second = 2e6;

KeyChoice keys_of(const YcsbOptions& options, const YcsbMix& mix) {
  KeyChoice standard;
  if (mix.reads_latest) standard.distribution = KeyDistribution::latest;
  return options.keys.value_or(standard);
}

TimedPhaseOptions timed_phase_options(const YcsbOptions& options, const YcsbCase& run) {
  TimedPhaseOptions phase;
  phase.threads = run.threads;
  phase.interval_seconds = options.interval_seconds;
  phase.operations = run.mix.rewrites ? options.records * options.rounds : options.operations;
  phase.seconds = run.mix.rewrites ? 0 : options.seconds;
  return phase;
}

YcsbRecordsOptions records_options(const YcsbOptions& options, const YcsbCase& run) {
  YcsbRecordsOptions records;
  records.loaded = records.capacity = options.records;
  records.value_bytes = options.value_bytes;
  records.seed = options.seed;
  records.scans = run.mix.percent_of(Operation::scan) > 0;
  if (!run.mix.inserts()) return records;
  const auto in_time = static_cast<uint64_t>(options.seconds * max_inserts_per_second) + 100'000;
  const uint64_t by_time = options.seconds > 0 ? in_time : UINT64_MAX;
  const uint64_t by_number = options.operations ? options.operations : UINT64_MAX;
  records.capacity += std::min(by_time, by_number);
  return records;
}

class YcsbRun {
 public:
  YcsbRun(const YcsbOptions& options, const YcsbCase& run, const SmallStoreConfiguration& store,
          const Progress& progress)
      : options_(options),
        case_(run),
        configuration_(store),
        progress_(progress),
        records_(records_options(options, run)) {}

  Status run() {
    Result<ScratchDirectory> directory =
        ScratchDirectory::create(options_.directory, configuration_.name());
    if (!directory.ok()) return directory.status();
    directory_ = &*directory;
    SmallStoreSettings settings;
    settings.directory = directory->path();
    settings.durability = options_.durability;
    settings.threads = case_.threads;
    settings.max_bytes = records_.capacity() * records_.record_bytes();
    store_ = configuration_.make(settings);
    return_freed_memory();
    const uint64_t resident_before = resident_bytes();
    reset_peak_resident();
    const ProcessIo io_before = process_io();
    STRIDE_TRY(store_->open());
    STRIDE_TRY(load());
    STRIDE_TRY(run_operations());
    const uint64_t peak = peak_resident_bytes();
    run_.peak_rss_bytes = peak > resident_before ? peak - resident_before : 0;
    run_.numbers["bytes_after_run"] = static_cast<double>(directory->bytes());
    Stopwatch watch;
    STRIDE_TRY(store_->close());
    run_.numbers["close_seconds"] = watch.seconds();
    add_space_and_io(process_io() - io_before);
    STRIDE_TRY(reopen());
    STRIDE_TRY(store_->close());
    return {};
  }

  // Valid after run().
  void finish(std::vector<ResultRow>* rows, std::vector<YcsbSeries>* series) {
    for (ResultRow* row : {&load_, &run_, &reopen_}) rows->push_back(std::move(*row));
    series->push_back({.workload = case_.mix.name,
                       .store = configuration_.name(),
                       .threads = case_.threads,
                       .repeat = case_.repeat,
                       .interval_seconds = options_.interval_seconds,
                       .seconds = timed_.seconds,
                       .intervals = std::move(timed_.intervals)});
  }

 private:
  ResultRow row(const std::string& suffix, uint64_t records, double seconds) const {
    ResultRow row;
    row.workload = "ycsb";
    row.engine = configuration_.engine;
    row.configuration = configuration_.configuration;
    row.backend = "host";
    row.phase = case_.phase() + suffix;
    row.records = records;
    row.seconds = seconds;
    row.machine = this_machine().to_string();
    row.raw_bytes = records_.visible() * records_.record_bytes();
    row.numbers = {{"threads", case_.threads},
                   {"value_bytes", options_.value_bytes},
                   {"load_batch", options_.load_batch},
                   {"loaded", static_cast<double>(options_.records)},
                   {"repeat", case_.repeat},
                   {"seed", static_cast<double>(options_.seed)}};
    row.texts = {
        {"ycsb", case_.mix.name},
        {"keys", case_.mix.rewrites ? "rounds" : keys_of(options_, case_.mix).to_string()}};
    return row;
  }
  void show(const std::string& phase) const {
    progress_.show(configuration_.name() + " " + case_.mix.name + " " + phase + ", " +
                   std::to_string(case_.threads) + " threads");
  }

  Status load_records(std::atomic<uint64_t>* next) {
    const uint64_t batch = options_.load_batch;
    std::vector<YcsbKey> keys(batch);
    std::vector<std::string> values(batch);
    std::vector<YcsbWrite> writes(batch);
    std::vector<SmallRecord> records;
    while (true) {
      const uint64_t first = next->fetch_add(batch);
      if (first >= options_.records) return {};
      const uint64_t count = std::min(batch, options_.records - first);
      records.clear();
      for (uint64_t i = 0; i < count; ++i) {
        keys[i] = records_.key(first + i);
        writes[i] = records_.begin_write(first + i);
        records_.make_value(first + i, writes[i].version, &values[i]);
        records.push_back({keys[i].view(), as_bytes(values[i])});
      }
      STRIDE_TRY(batch == 1 ? store_->put(records[0].key, records[0].value)
                            : store_->put_all(records));
      for (uint64_t i = 0; i < count; ++i) records_.end_write(first + i, writes[i]);
    }
  }
  Status load() {
    show("load");
    Stopwatch watch;
    std::atomic<uint64_t> next{0};
    std::vector<Status> results(case_.threads);
    std::vector<std::thread> threads;
    for (Status& result : results) threads.emplace_back([&] { result = load_records(&next); });
    for (std::thread& thread : threads) thread.join();
    const double seconds = watch.seconds();
    for (Status& result : results) STRIDE_TRY(std::move(result));
    load_ = row("_load", options_.records, seconds);
    return {};
  }

  Status run_operations() {
    show("run");
    const YcsbClientOptions clients{.mix = case_.mix,
                                    .keys = keys_of(options_, case_.mix),
                                    .seed = options_.seed + case_.repeat};
    const double cpu_before = cpu_seconds();
    STRIDE_TRY(run_timed_phase(
        store_.get(), &records_, clients, timed_phase_options(options_, case_),
        [&] { return directory_->bytes(); }, &timed_));
    run_ = row("", timed_.operations, timed_.seconds);
    run_.numbers["cpu_seconds"] = cpu_seconds() - cpu_before;
    for (size_t kind = 0; kind < operation_kinds; ++kind)
      add_latencies(static_cast<Operation>(kind));
    return {};
  }
  void add_latencies(Operation operation) {
    const LatencyHistogram& latencies = timed_.of(operation);
    if (latencies.count() == 0) return;
    const std::string name = operation_name(operation);
    run_.numbers[name + "_calls"] = static_cast<double>(latencies.count());
    run_.numbers[name + "_p50_us"] = latencies.percentile(0.5) / 1e3;
    run_.numbers[name + "_p99_us"] = latencies.percentile(0.99) / 1e3;
    run_.numbers[name + "_p999_us"] = latencies.percentile(0.999) / 1e3;
    run_.numbers[name + "_max_us"] = static_cast<double>(latencies.max()) / 1e3;
  }

  // The store is closed.
  void add_space_and_io(const ProcessIo& written) {
    uint64_t puts = options_.records;
    for (Operation o : {Operation::update, Operation::insert, Operation::read_modify_write})
      puts += timed_.of(o).count();
    uint64_t most = directory_->bytes();
    load_.bytes_on_disk = run_.bytes_on_disk = reopen_bytes_ = most;
    for (const YcsbInterval& interval : timed_.intervals)
      most = std::max(most, interval.directory_bytes);
    run_.numbers["most_bytes_on_disk"] = static_cast<double>(most);
    run_.numbers["user_bytes_written"] = static_cast<double>(puts * records_.record_bytes());
    run_.numbers["storage_bytes_written"] = static_cast<double>(written.storage_bytes);
    run_.numbers["call_bytes_written"] = static_cast<double>(written.call_bytes);
  }

  Status reopen() {
    show("reopen");
    Stopwatch watch;
    STRIDE_TRY(store_->open());
    reopen_ = row("_reopen", records_.visible(), watch.seconds());
    reopen_.bytes_on_disk = reopen_bytes_;
    run_.numbers["open_seconds"] = reopen_.seconds;
    Stopwatch scan;
    STRIDE_TRY(check_all_records(store_.get(), records_));
    reopen_.numbers["scan_seconds"] = scan.seconds();
    return {};
  }

  const YcsbOptions& options_;
  const YcsbCase& case_;
  const SmallStoreConfiguration& configuration_;
  const Progress& progress_;
  YcsbRecords records_;
  const ScratchDirectory* directory_ = nullptr;
  std::unique_ptr<SmallStore> store_;
  TimedPhase timed_;
  ResultRow load_, run_, reopen_;
  uint64_t reopen_bytes_ = 0;
};

}  // namespace

Status run_ycsb(const YcsbOptions& options, const Progress& progress, std::vector<ResultRow>* rows,
                std::vector<YcsbSeries>* series) {
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat)
    for (const YcsbMix& mix : options.mixes)
      for (unsigned threads : options.threads)
        for (const SmallStoreConfiguration& store : options.stores) {
          const YcsbCase run{mix, threads, repeat};
          YcsbRun measured(options, run, store, progress);
          if (Status s = measured.run(); !s.ok())
            return explain(store.name() + ", workload " + mix.name, s);
          measured.finish(rows, series);
        }
  return {};
}

}  // namespace stride::benchmark
