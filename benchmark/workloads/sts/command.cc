// The command `stride-bench sts`.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/sts/workload.h"

namespace stride::benchmark {
namespace {

struct StsArguments {
  CommonArguments common;
  StrideArguments stride;
  std::string records = "1m";
  uint32_t flows = 4;
  double randomness = 1;
  uint64_t seed = 1;
  std::string batches = "1,1k,100k,1m";
};

void add_sts(CLI::App* command, StsArguments* sts) {
  command->add_option("--records", sts->records, "Records of all flows together")
      ->capture_default_str();
  command->add_option("--flows", sts->flows, "Flows that write at once, a transaction each")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command
      ->add_option("--randomness", sts->randomness,
                   "Chance that a key is random; otherwise it is the one before plus 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", sts->seed, "Equal seeds give equal records and lookups")
      ->capture_default_str();
  command->add_option("--batches", sts->batches, "Sizes of the batches that are looked up")
      ->capture_default_str();
  add_stride(command, &sts->stride);
  add_common(command, &sts->common);
  command->footer(
      "Records are made in memory, in columns, before the clock starts, for every engine alike.\n"
      "Looked up keys are random, 10 % of them are not there; values are copied out. Memory is\n"
      "what a phase needs beyond the records that the benchmark itself holds.");
}

std::string sts_title(const StsWorkloadOptions& options, const StsArguments& sts) {
  return "STS workload: " + with_commas(options.records) + " records, " +
         std::to_string(options.flows) + " flows, randomness " +
         CLI::detail::to_string(options.randomness) + ", seed " + std::to_string(options.seed) +
         ", durability " + sts.common.durability + stride_title(sts.stride) + ", median of " +
         std::to_string(options.repeats);
}

Result<StsWorkloadOptions> parse(const StsArguments& sts) {
  StsWorkloadOptions options;
  Result<uint64_t> records =
      parse_count("--records", sts.records, std::numeric_limits<uint32_t>::max() - 1);
  if (!records.ok()) return records.status();
  Result<std::vector<uint64_t>> batches =
      parse_counts("a size in --batches", sts.batches, 16'000'000);
  if (!batches.ok()) return batches.status();
  STRIDE_TRY(parse_engines(sts.common, sts.stride, &options));
  if (std::isnan(sts.randomness)) return Status::invalid("--randomness must be from 0 to 1");
  // What run_sts itself holds: the records, their order, and the queries.
  constexpr uint64_t bytes_a_record = 100;
  STRIDE_TRY(check_memory(*records * bytes_a_record,
                          std::to_string(*records) + " records, before any engine runs,",
                          "lower --records"));
  options.records = *records;
  options.flows = sts.flows;
  options.randomness = sts.randomness;
  options.seed = sts.seed;
  options.batches = *batches;
  return options;
}

Status run_sts_command(const StsArguments& sts) {
  Result<StsWorkloadOptions> options = parse(sts);
  if (!options.ok()) return options.status();
  return measure_and_compare(sts.common, sts_title(*options, sts),
                             [&](const Progress& progress, ResultRows* rows) {
                               return run_sts(*options, progress, rows);
                             });
}

const bool sts_registered = WorkloadCommands::add(10, "sts", "The STS DatabaseBenchmark workload",
                                                  &add_sts, &run_sts_command);

}  // namespace
}  // namespace stride::benchmark
