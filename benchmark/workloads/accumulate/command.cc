// The command `stride-bench accumulate`.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/peers/engines.h"
#include "benchmark/workloads/accumulate/workload.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct AccumulateArguments {
  CommonArguments common{.engines = "all"};
  StrideArguments stride;
  std::string deltas = "10m";
  std::string keys = "1m";
  std::string distribution = "uniform";
  std::string batch;
  uint64_t seed = 1;
};

constexpr uint64_t max_rows = 0xFFFFFFFE;
// Deltas, their keys and their places; of keys the sums, what was read, and what engines hold.
constexpr uint64_t bytes_a_delta = 48, bytes_a_key = 128;

std::string accumulate_engines_help() {
  std::string text =
      "What is compared, with commas between; an engine's name means all its "
      "configurations [all]:";
  for (const AccumulateConfiguration& e : accumulate_engines())
    text += "\n  " + e.name() + ": " + e.description;
  return text;
}

Result<std::vector<AccumulateConfiguration>> choose(const std::string& list) {
  std::vector<AccumulateConfiguration> chosen;
  std::string known;
  for (const AccumulateConfiguration& e : accumulate_engines())
    known += (known.empty() ? "" : ", ") + e.name();
  for (const std::string& name : split_list(list, ',')) {
    bool found = false;
    for (const AccumulateConfiguration& e : accumulate_engines()) {
      if (name != "all" && name != e.engine && name != e.name()) continue;
      found = true;
      bool again = std::any_of(chosen.begin(), chosen.end(),
                               [&](const auto& other) { return other.name() == e.name(); });
      if (!again) chosen.push_back(e);
    }
    if (found) continue;
    if (name == "rocksdb") STRIDE_TRY(choose_engines(name).status());
    return Status::invalid("--engines: unknown engine '" + name + "'; known are " + known);
  }
  if (chosen.empty()) return Status::invalid("--engines is empty: " + known);
  return chosen;
}

Result<AccumulateOptions> parse(const AccumulateArguments& accumulate) {
  AccumulateOptions options;
  Result<uint64_t> deltas = parse_count("--deltas", accumulate.deltas, max_rows);
  if (!deltas.ok()) return deltas.status();
  options.deltas = *deltas;
  Result<uint64_t> keys = parse_count("--keys", accumulate.keys, max_rows);
  if (!keys.ok()) return keys.status();
  options.keys = *keys;
  Result<TargetDistribution> distribution = parse_distribution(accumulate.distribution);
  if (!distribution.ok()) return distribution.status();
  options.distribution = *distribution;
  Result<std::vector<AccumulateConfiguration>> engines = choose(accumulate.common.engines);
  if (!engines.ok()) return engines.status();
  options.engines = *engines;
  if (!accumulate.batch.empty()) {
    Result<uint64_t> batch = parse_count("--batch", accumulate.batch, max_rows);
    if (!batch.ok()) return batch.status();
    options.settings.batch = *batch;
  }
  options.settings.threads = chosen_threads(accumulate.common);
  options.settings.durability = parse_durability(accumulate.common.durability);
  options.settings.backend = parse_backend(accumulate.stride.backend);
  options.directory = accumulate.common.directory;
  options.repeats = accumulate.common.repeats;
  options.seed = accumulate.seed;
  return options;
}

void add_accumulate(CLI::App* command, AccumulateArguments* accumulate) {
  command->add_option("--deltas", accumulate->deltas, "Deltas in all")->capture_default_str();
  command->add_option("--keys", accumulate->keys, "Keys that they are added to")
      ->capture_default_str();
  command
      ->add_option("--distribution", accumulate->distribution,
                   "Of the deltas' keys: uniform, sorted (in the order in which they were loaded), "
                   "zipf:S")
      ->capture_default_str();
  command->add_option("--batch", accumulate->batch, "Deltas of one transaction of StrideDB [all]");
  command->add_option("--engines,--engine", accumulate->common.engines, accumulate_engines_help());
  command
      ->add_option("--durability", accumulate->common.durability,
                   "What deltas survive in the end: sync (power loss), flush (a killed process), "
                   "none")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  command->add_option("--seed", accumulate->seed, "Equal seeds give equal keys and deltas")
      ->capture_default_str();
  add_backend(command, &accumulate->stride);
  add_directory(command, &accumulate->common);
  add_measuring(command, &accumulate->common);
  command->footer(
      "Keys and deltas, 8 bytes each, are made before the clock starts. load puts the first "
      "number\n"
      "of each key, accumulate adds all deltas, which are durable then, read reads all keys and\n"
      "numbers, one after the other. RocksDB merges on --threads. All numbers are checked.");
}

Status run_accumulate_command(const AccumulateArguments& accumulate) {
  Result<AccumulateOptions> options = parse(accumulate);
  if (!options.ok()) return options.status();
  STRIDE_TRY(check_memory(options->deltas * bytes_a_delta + options->keys * bytes_a_key,
                          "keys and deltas", "lower --deltas or --keys"));
  std::string title = "Accumulate: " + with_commas(options->deltas) + " deltas on " +
                      with_commas(options->keys) + " keys, " + options->distribution.name +
                      ", seed " + std::to_string(options->seed) + ", durability " +
                      accumulate.common.durability + stride_title(accumulate.stride) +
                      ", median of " + std::to_string(options->repeats);
  return measure_and_compare(accumulate.common, title,
                             [&](const Progress& progress, ResultRows* rows) {
                               return run_accumulate(*options, progress, rows);
                             });
}

const bool accumulate_registered = WorkloadCommands::add(
    90, "accumulate", "Deltas added to numbers by key, beside a merge operator", &add_accumulate,
    &run_accumulate_command);

}  // namespace
}  // namespace stride::benchmark
