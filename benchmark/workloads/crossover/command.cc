// The command `stride-bench crossover`.
#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/crossover/report.h"
#include "benchmark/workloads/crossover/workload.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/random_arguments.h"

namespace stride::benchmark {
namespace {

struct CrossoverArguments {
  CommonArguments common;
  StrideArguments stride;
  RandomArguments random;
  std::string largest = "1048576";
};

constexpr uint64_t max_crossover_batch = 16'777'216;

Result<CrossoverOptions> parse(const CrossoverArguments& crossover) {
  EngineWorkloadOptions engines;
  STRIDE_TRY(parse_engines(crossover.common, crossover.stride, &engines));
  Result<RandomRecordsOptions> records = parse_random(crossover.random);
  if (!records.ok()) return records.status();
  Result<uint64_t> largest = parse_count("--largest-batch", crossover.largest, max_crossover_batch);
  if (!largest.ok()) return largest.status();
  CrossoverOptions options;
  options.records = *records;
  options.max_batch = *largest;
  options.use_device = engines.stride.backend != BackendKind::host;
  options.values = engines.stride.value_placement;
  options.repeats = engines.repeats;
  options.threads = engines.threads;
  options.directory = engines.directory;
  return options;
}

void add_crossover(CLI::App* command, CrossoverArguments* crossover) {
  add_random(command, &crossover->random);
  command
      ->add_option("--largest-batch", crossover->largest,
                   "Batches of 1, 2, 4, ... up to so many queries are measured")
      ->capture_default_str();
  add_stride(command, &crossover->stride);
  add_directory(command, &crossover->common);
  add_measuring(command, &crossover->common);
  command->footer(
      "One database is opened by several read-only handles: single is a loop of gets of one key,\n"
      "on the host; host, cuda and automatic are batches with these backends. All copy values\n"
      "into one column. automatic has answered enough batches before that it has brought to the\n"
      "device what pays there. Without a device, or with --backend host, only the host is shown.");
}

Status run_crossover_command(const CrossoverArguments& crossover) {
  Result<CrossoverOptions> options = parse(crossover);
  if (!options.ok()) return options.status();
  std::string no_device;
  auto tables = [&](const ResultRows& rows) {
    std::string text = crossover_tables(rows);
    if (!no_device.empty()) text += "the host alone, without a device: " + no_device + "\n";
    return text;
  };
  return measure_and_show(
      crossover.common,
      {.title = "Crossover: " + random_title(options->records) + stride_title(crossover.stride) +
                ", median of " + std::to_string(options->repeats),
       .run = [&](const Progress& progress,
                  ResultRows* rows) { return run_crossover(*options, progress, rows, &no_device); },
       .tables = tables,
       .plots = {{.rows = &crossover_plot_rows}}});
}

const bool crossover_registered =
    WorkloadCommands::add(50, "crossover", "From which batch on a device is faster than the host",
                          &add_crossover, &run_crossover_command);

}  // namespace
}  // namespace stride::benchmark
