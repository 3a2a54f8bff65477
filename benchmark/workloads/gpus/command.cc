// The command `stride-bench gpus`.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/gpus/report.h"
#include "benchmark/workloads/gpus/workload.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct GpusArguments {
  CommonArguments common;
  std::string devices = "1,2";
  std::string kind = "gpus";
  std::string placement = "copies";
  std::string keys = "10m";
  std::string queries = "100m";
  std::string value_queries = "10m";
  uint32_t value_bytes = 32;
  std::string scatter_sources = "100m", scatter_targets = "1m";
  std::string set_vectors = "50m";
  double zipf = 0;
  std::string min_share, min_device_share;
  unsigned rounds = 3;
  std::vector<std::string> prefixes = {"benchmark/data/prefixes_ipv4_country.tsv.zst",
                                       "benchmark/data/prefixes_ipv4_asn.tsv.zst"};
  uint64_t seed = 1;
};

constexpr uint64_t max_devices = 64;
constexpr uint64_t max_gpus_queries = 1'000'000'000;
constexpr uint64_t bytes_a_gpus_query = 60;  // queries, answers and what they should be

Result<GpusOptions> parse(const GpusArguments& gpus) {
  GpusOptions options;
  Result<std::vector<uint64_t>> devices = parse_counts("--devices", gpus.devices, max_devices);
  if (!devices.ok()) return devices.status();
  options.devices.insert(options.devices.end(), devices->begin(), devices->end());
  std::ranges::sort(options.devices);
  options.devices.erase(std::unique(options.devices.begin(), options.devices.end()),
                        options.devices.end());
  const std::pair<const char*, std::pair<const std::string*, uint64_t*>> counts[] = {
      {"--keys", {&gpus.keys, &options.keys}},
      {"--queries", {&gpus.queries, &options.queries}},
      {"--value-queries", {&gpus.value_queries, &options.value_queries}},
      {"--scatter-sources", {&gpus.scatter_sources, &options.scatter_sources}},
      {"--scatter-targets", {&gpus.scatter_targets, &options.scatter_targets}},
      {"--set-vectors", {&gpus.set_vectors, &options.set_vectors}},
      {"--min-share", {&gpus.min_share, &options.cut.min_share}},
      {"--min-device-share", {&gpus.min_device_share, &options.cut.min_device_share}}};
  for (const auto& [name, count] : counts) {
    if (count.first->empty()) continue;
    Result<uint64_t> parsed = parse_count(name, *count.first, max_gpus_queries);
    if (!parsed.ok()) return parsed.status();
    *count.second = *parsed;
  }
  options.one_gpu = gpus.kind == "one-gpu";
  options.cut.in_parts = gpus.placement == "parts";
  options.value_bytes = gpus.value_bytes;
  options.zipf = gpus.zipf;
  options.prefixes = gpus.prefixes;
  options.rounds = gpus.rounds;
  options.timing.repeats = gpus.common.repeats;
  options.threads = chosen_threads(gpus.common);
  options.seed = gpus.seed;
  return options;
}

void add_gpus_cut(CLI::App* command, GpusArguments* gpus) {
  command->add_option("--min-share", gpus->min_share,
                      "Queries that a device gets of a batch at least [as the library]");
  command->add_option("--min-device-share", gpus->min_device_share,
                      "The same of a batch in the memory of devices [as the library]");
}

void add_gpus(CLI::App* command, GpusArguments* gpus) {
  command
      ->add_option("--devices", gpus->devices,
                   "Numbers of devices, with commas between; one is always measured")
      ->capture_default_str();
  command
      ->add_option("--kind", gpus->kind,
                   "gpus: a GPU for each device; one-gpu: devices that share the first GPU, each "
                   "with a copy of its own, which shows what sharing out costs")
      ->check(CLI::IsMember({"gpus", "one-gpu"}))
      ->capture_default_str();
  command
      ->add_option("--placement", gpus->placement,
                   "copies: of the index, on each device; parts: each device has a range of the "
                   "keys, and prefixes are not measured")
      ->check(CLI::IsMember({"copies", "parts"}))
      ->capture_default_str();
  command->add_option("--keys", gpus->keys, "Random keys of 8 bytes")->capture_default_str();
  command->add_option("--queries", gpus->queries, "Searches in one call")->capture_default_str();
  command
      ->add_option("--zipf", gpus->zipf,
                   "Queries are keys of which the k-th hottest is as likely as 1 / k^ZIPF; 0: all "
                   "alike, and nine of ten are there")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command->add_option("--value-queries", gpus->value_queries, "Gets in one call, at most --queries")
      ->capture_default_str();
  command->add_option("--value-bytes", gpus->value_bytes, "Of the value of each key")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  command
      ->add_option("--prefixes", gpus->prefixes,
                   "Files with a prefix of IPv4, a tab and a value a line (.zst is unpacked)")
      ->capture_default_str();
  command
      ->add_option("--scatter-sources", gpus->scatter_sources, "Numbers that are added in one call")
      ->capture_default_str();
  command->add_option("--scatter-targets", gpus->scatter_targets, "Sums that they are added to")
      ->capture_default_str();
  command
      ->add_option("--set-vectors", gpus->set_vectors,
                   "Vectors of 4 words that are put into a set of slots in one call, each twice on "
                   "average")
      ->capture_default_str();
  add_gpus_cut(command, gpus);
  command
      ->add_option("--rounds", gpus->rounds,
                   "Each operation is measured with each number of devices, so many times in turn")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_option("--seed", gpus->seed, "Equal seeds give equal keys and queries")
      ->capture_default_str();
  add_measuring(command, &gpus->common);
  command->footer(
      "Every device has a copy or a part of the index and its values, and gets an equal share of\n"
      "each batch. A time is that of one call, the median of at least --repeat calls "
      "that\n"
      "take 0.2 s or more, and of the rounds. Nine of ten queries are found. Queries and answers\n"
      "lie in the memory of the devices, spread evenly over them (devices), in that of the first\n"
      "(first), in pinned host memory and in any host memory. get copies values to host memory.\n"
      "put is find_or_put of a set that was emptied before.\n"
      "All answers are compared with those of binary searches on the host. The files that are "
      "read\n"
      "by default are found from the source tree's root.");
}

Status run_gpus_command(const GpusArguments& gpus) {
  Result<GpusOptions> options = parse(gpus);
  if (!options.ok()) return options.status();
  STRIDE_TRY(check_memory(options->queries * bytes_a_gpus_query, "the queries", "lower --queries"));
  STRIDE_TRY(check_memory(options->scatter_sources * 3 * sizeof(uint32_t), "the numbers to add",
                          "lower --scatter-sources"));
  STRIDE_TRY(check_memory(options->set_vectors * 50, "the vectors", "lower --set-vectors"));
  STRIDE_TRY(check_memory(options->keys * (40 + uint64_t{options->value_bytes}), "the keys",
                          "lower --keys or --value-bytes"));
  return measure_and_show(
      gpus.common,
      {.title = "Several GPUs (" + gpus.kind + ", " + gpus.placement +
                "): " + with_commas(options->keys) + " keys, " + with_commas(options->queries) +
                " queries a call, seed " + std::to_string(options->seed),
       .run = [&](const Progress& progress,
                  ResultRows* rows) { return run_gpus(*options, progress, rows); },
       .tables = &gpus_tables,
       .plots = {{.rows = &gpus_plot_rows}}});
}

const bool gpus_registered = WorkloadCommands::add(
    55, "gpus", "Several GPUs beside one: search, match, get", &add_gpus, &run_gpus_command);

}  // namespace
}  // namespace stride::benchmark
