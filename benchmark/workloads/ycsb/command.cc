// The command `stride-bench ycsb`.
#include <CLI/CLI.hpp>

#include "adapters/cli/text/with_commas.h"
#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/peers/engines.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/ycsb/report.h"
#include "benchmark/workloads/ycsb/workload.h"

namespace stride::benchmark {
namespace {

struct YcsbArguments {
  YcsbArguments() {
    common.engines = "all";
    common.repeats = 1;
  }
  CommonArguments common;
  std::string workloads = "A";
  std::string distribution;
  std::string records = "1m";
  std::string operations = "0";
  std::string threads = "1";
  std::string load_batch = "1k";
  double seconds = 10;
  double interval_seconds = 0.5;
  uint32_t rounds = 20;
  uint32_t value_bytes = 100;
  uint64_t seed = 1;
  std::string series;
};

constexpr uint64_t max_ycsb_records = 1'000'000'000, max_operations = 1'000'000'000'000;
constexpr uint64_t max_load_batch = 100'000;

Status parse_numbers(const YcsbArguments& ycsb, YcsbOptions* options) {
  Result<uint64_t> records = parse_count("--records", ycsb.records, max_ycsb_records);
  if (!records.ok()) return records.status();
  options->records = *records;
  Result<uint64_t> operations = parse_count("--operations", ycsb.operations, max_operations, 0);
  if (!operations.ok()) return operations.status();
  options->operations = *operations;
  Result<uint64_t> batch = parse_count("--load-batch", ycsb.load_batch, max_load_batch);
  if (!batch.ok()) return batch.status();
  options->load_batch = static_cast<uint32_t>(*batch);
  Result<std::vector<uint64_t>> threads =
      parse_counts("--threads", ycsb.threads, YcsbRecords::max_threads);
  if (!threads.ok()) return threads.status();
  options->threads.assign(threads->begin(), threads->end());
  if (options->threads.empty()) return Status::invalid("--threads is empty: give 1,16");
  if (ycsb.seconds == 0 && *operations == 0)
    return Status::invalid("without --seconds a run needs --operations");
  return {};
}

Result<YcsbOptions> parse_ycsb(const YcsbArguments& ycsb) {
  YcsbOptions options;
  STRIDE_TRY(parse_numbers(ycsb, &options));
  Result<std::vector<YcsbMix>> mixes = choose_ycsb_mixes(ycsb.workloads);
  if (!mixes.ok()) return mixes.status();
  options.mixes = std::move(*mixes);
  if (!ycsb.distribution.empty()) {
    Result<KeyChoice> keys = parse_key_choice(ycsb.distribution);
    if (!keys.ok()) return keys.status();
    options.keys = *keys;
  }
  Result<std::vector<SmallStoreConfiguration>> stores =
      choose_small_stores("--stores", ycsb.common.engines);
  if (!stores.ok()) return stores.status();
  options.stores = std::move(*stores);
  options.seconds = ycsb.seconds;
  options.interval_seconds = ycsb.interval_seconds;
  options.rounds = ycsb.rounds;
  options.value_bytes = ycsb.value_bytes;
  options.durability = parse_durability(ycsb.common.durability);
  options.directory = ycsb.common.directory;
  options.repeats = ycsb.common.repeats;
  options.seed = ycsb.seed;
  return options;
}

void add_work(CLI::App* command, YcsbArguments* ycsb) {
  std::string workloads = "What is done, with commas between, or all:";
  for (const YcsbMix& mix : ycsb_mixes()) workloads += "\n  " + mix.name + ": " + mix.description;
  command->add_option("--workload,--workloads", ycsb->workloads, workloads)->capture_default_str();
  command->add_option(
      "--distribution", ycsb->distribution,
      "Which records: uniform; zipf:THETA, some much more often than others, scattered among all\n"
      "that were loaded; latest:THETA, the last inserted most often [zipf:0.99; D latest:0.99]");
  command->add_option("--records", ycsb->records, "Records that are loaded")->capture_default_str();
  command
      ->add_option("--load-batch", ycsb->load_batch,
                   "Records of each commit while loading, the same for all stores; 1: single puts")
      ->capture_default_str();
  command->add_option("--value-bytes", ycsb->value_bytes, "Of each value; keys have 24")
      ->check(CLI::Range(YcsbRecords::min_value_bytes, 1u << 20))
      ->capture_default_str();
  command
      ->add_option("--threads,--writers", ycsb->threads,
                   "Clients at once, while loading too: numbers with commas between")
      ->capture_default_str();
  command->add_option("--seconds", ycsb->seconds, "That a run takes, at most; 0: no limit")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command
      ->add_option("--operations", ycsb->operations,
                   "Of a run, of all threads together, at most; 0: no limit")
      ->capture_default_str();
  command->add_option("--rounds", ycsb->rounds, "Of rewrite, in place of the two limits")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str();
  command->add_option("--seed", ycsb->seed, "Equal seeds give equal keys and operations")
      ->capture_default_str();
}

void add_ycsb(CLI::App* command, YcsbArguments* ycsb) {
  add_work(command, ycsb);
  command->add_option("--stores,--engines,--engine", ycsb->common.engines, small_stores_help());
  command
      ->add_option("--durability", ycsb->common.durability,
                   "What a commit survives: sync (power loss), flush (a killed process), none\n"
                   "(RocksDB without its log). LMDB does the same for flush and none")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  add_directory(command, &ycsb->common);
  add_results(command, &ycsb->common);
  command->add_option(
      "--series", ycsb->series,
      "File for rates, latencies and sizes over time (CSV); --plot draws the rates");
  command->add_option("--interval", ycsb->interval_seconds, "Seconds of one point of the series")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  command->footer(
      "Each workload begins with a new store: it is loaded with --records records in a random\n"
      "order, the workload runs, and then the store is closed and opened again. Every value that\n"
      "is read is checked, also whether it is up to date, and after reopening all records are.\n"
      "The first wrong answer ends the run with exit code 1.\n"
      "\n"
      "Examples:\n"
      "  stride-bench ycsb --workload A,B,C --threads 1,16 --durability flush\n"
      "  stride-bench ycsb --workload E --distribution uniform --stores stride,lmdb\n"
      "  stride-bench ycsb --workload rewrite --records 200k --series rewrite.csv --plot "
      "rewrite.svg");
}

std::string ycsb_title(const YcsbArguments& ycsb, const YcsbOptions& options) {
  return "YCSB: " + with_commas(options.records) + " records of " + std::to_string(YcsbKey::bytes) +
         " + " + std::to_string(options.value_bytes) + " bytes, loaded by " +
         with_commas(options.load_batch) + ", durability " + ycsb.common.durability +
         ", median of " + std::to_string(options.repeats);
}

Status run_ycsb_command(const YcsbArguments& ycsb) {
  Result<YcsbOptions> options = parse_ycsb(ycsb);
  if (!options.ok()) return options.status();
  std::vector<YcsbSeries> series;
  Measurement measurement;
  measurement.title = ycsb_title(ycsb, *options);
  measurement.run = [&](const Progress& progress, ResultRows* rows) {
    return run_ycsb(*options, progress, rows, &series);
  };
  measurement.tables = [&](const ResultRows& rows) {
    const std::string note = rocksdb_note();
    return ycsb_tables(rows) + (note.empty() ? "" : "\n" + note + "\n");
  };
  measurement.plots = {{.draw = [&](const std::string& title, const ResultRows&) {
    return ycsb_series_svg(title, series);
  }}};
  measurement.files = {{ycsb.series, [&] { return ycsb_series_csv(series); }}};
  return measure_and_show(ycsb.common, measurement);
}

const bool ycsb_registered = WorkloadCommands::add(
    16, "ycsb", "The YCSB core workloads, one record a commit", &add_ycsb, &run_ycsb_command);

}  // namespace
}  // namespace stride::benchmark
