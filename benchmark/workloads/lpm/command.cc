// The command `stride-bench lpm`.
#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/lpm/report.h"
#include "benchmark/workloads/lpm/workload.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct LpmArguments {
  CommonArguments common{.durability = "none"};
  StrideArguments stride;
  std::vector<std::string> prefixes = {
      "benchmark/data/prefixes_ipv4_country.tsv.zst", "benchmark/data/prefixes_ipv4_asn.tsv.zst",
      "benchmark/data/prefixes_ipv6_country.tsv.zst", "benchmark/data/prefixes_ipv6_asn.tsv.zst"};
  std::string addresses = "uniform,table";
  std::string queries = "10m";
  std::string update_rate = "100k";
  std::string update_batch = "1000";
  double update_seconds = 3;
  uint64_t seed = 1;
};

constexpr uint64_t max_queries = 1'000'000'000;
constexpr uint64_t max_updates = 1'000'000'000;
constexpr uint64_t bytes_a_query = 60;  // address, expected and found answers
constexpr uint64_t bytes_an_update = 100;

Result<LpmOptions> parse(const LpmArguments& lpm) {
  EngineWorkloadOptions engines;
  STRIDE_TRY(parse_engines(lpm.common, lpm.stride, &engines));
  Result<uint64_t> queries = parse_count("--queries", lpm.queries, max_queries);
  if (!queries.ok()) return queries.status();
  Result<uint64_t> rate = parse_count("--update-rate", lpm.update_rate, max_updates, 0);
  if (!rate.ok()) return rate.status();
  Result<uint64_t> batch = parse_count("--update-batch", lpm.update_batch, max_updates);
  if (!batch.ok()) return batch.status();
  LpmOptions options;
  options.prefixes = lpm.prefixes;
  options.addresses = split_list(lpm.addresses, ',');
  if (options.addresses.empty()) return Status::invalid("--addresses is empty");
  options.queries = *queries;
  options.update_rate = *rate;
  options.update_batch = *batch;
  options.update_seconds = lpm.update_seconds;
  options.durability = engines.durability;
  options.backend = engines.stride.backend;
  options.threads = engines.threads;
  options.seed = lpm.seed;
  options.timing.repeats = engines.repeats;
  options.directory = engines.directory;
  return options;
}

void add_lpm(CLI::App* command, LpmArguments* lpm) {
  command
      ->add_option(
          "--prefixes", lpm->prefixes,
          "Files with a prefix, a tab and a value a line (.zst is unpacked); prefixes of a "
          "later file go over those of an earlier one")
      ->capture_default_str();
  command
      ->add_option("--addresses", lpm->addresses,
                   "What is looked up, with commas between:\n"
                   "  uniform: any addresses\n"
                   "  table: in a random prefix of the table each\n"
                   "  FILE: an address a line, over and over")
      ->capture_default_str();
  command->add_option("--queries", lpm->queries, "Addresses in one call")->capture_default_str();
  command
      ->add_option("--update-rate", lpm->update_rate,
                   "Changed prefixes a second that are tried while matching goes on; 0: none")
      ->capture_default_str();
  command->add_option("--update-batch", lpm->update_batch, "Changed prefixes of a commit")
      ->capture_default_str();
  command->add_option("--update-seconds", lpm->update_seconds, "How long updates go on")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  command->add_option("--durability", lpm->common.durability, "Of updates")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  command->add_option("--seed", lpm->seed, "Equal seeds give equal addresses and updates")
      ->capture_default_str();
  add_backend(command, &lpm->stride);
  add_directory(command, &lpm->common);
  add_measuring(command, &lpm->common);
  command->footer(
      "IPv4 and IPv6 prefixes make a table each. Addresses lie in memory before the clock starts;\n"
      "a time is that of one call, a median. Answers are checked against a plain binary search\n"
      "over the intervals of the prefixes, which has lines of its own. Where there is a device, "
      "the\n"
      "index and a database are measured there too. Updates are new values, new longer prefixes "
      "and\n"
      "erasures. The files that are read by default are found from the source\n"
      "tree's root.");
}

Status run_lpm_command(const LpmArguments& lpm) {
  Result<LpmOptions> options = parse(lpm);
  if (!options.ok()) return options.status();
  auto updates =
      static_cast<uint64_t>(options->update_seconds * static_cast<double>(options->update_rate));
  STRIDE_TRY(check_memory(options->queries * bytes_a_query * options->addresses.size(),
                          "the addresses", "lower --queries"));
  STRIDE_TRY(check_memory(updates * bytes_an_update, "the updates",
                          "lower --update-rate or --update-seconds"));
  return measure_and_show(
      lpm.common, {.title = "Longest-prefix match: " + with_commas(options->queries) +
                            " addresses a call, seed " + std::to_string(options->seed) +
                            stride_title(lpm.stride),
                   .run = [&](const Progress& progress,
                              ResultRows* rows) { return run_lpm(*options, progress, rows); },
                   .tables = &lpm_tables,
                   .plots = {{.rows = &lpm_plot_rows}}});
}

const bool lpm_registered =
    WorkloadCommands::add(60, "lpm", "Longest-prefix match of routes", &add_lpm, &run_lpm_command);

}  // namespace
}  // namespace stride::benchmark
