// The command `stride-bench scatter`.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/device_backend.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/scatter/report.h"
#include "benchmark/workloads/scatter/workload.h"

namespace stride::benchmark {
namespace {

struct ScatterArguments {
  CommonArguments common;
  StrideArguments stride;
  std::string sources = "10m";
  std::string targets = "10k,1m";
  std::string distribution = "uniform,sorted,zipf:1.1";
  std::string type = "f32";
  std::string index = "u32";
  std::string operation = "add";
  std::string mode = "fast";
  std::string method = "automatic";
  std::string memory = "device";
  bool prepared = false;
  uint64_t seed = 1;
};

constexpr uint64_t max_scatter_sources = 100'000'000'000, max_scatter_targets = 100'000'000'000;
// A target takes memory in T itself, in its zeros, in a copy from a device, and in what T has to
// be.
constexpr uint64_t bytes_a_target = 56;

template <class T>
Choices<T> choices_of(std::initializer_list<T> values) {
  Choices<T> choices;
  for (T value : values) choices.push_back({scatter_name(value), value});
  return choices;
}

Status parse_sizes(const std::string& option, const std::string& list, uint64_t largest,
                   std::vector<uint64_t>* sizes) {
  Result<std::vector<uint64_t>> counts = parse_counts("a number in " + option, list, largest);
  if (!counts.ok()) return counts.status();
  if (counts->empty()) return Status::invalid(option + " is empty: 1m,10m, say");
  *sizes = *counts;
  return {};
}

Result<ScatterWorkloadOptions> parse(const ScatterArguments& scatter) {
  ScatterWorkloadOptions options;
  STRIDE_TRY(parse_sizes("--sources", scatter.sources, max_scatter_sources, &options.sources));
  STRIDE_TRY(parse_sizes("--targets", scatter.targets, max_scatter_targets, &options.targets));
  for (const std::string& name : split_list(scatter.distribution, ',')) {
    Result<TargetDistribution> distribution = parse_distribution(name);
    if (!distribution.ok()) return distribution.status();
    options.distributions.push_back(*distribution);
  }
  if (options.distributions.empty())
    return Status::invalid("--distribution is empty: uniform, sorted, zipf:1.1");
  Choices<NumberType> types;
  for (NumberType type : {NumberType::i32, NumberType::i64, NumberType::f32, NumberType::f64,
                          NumberType::f16, NumberType::bf16})
    types.push_back({std::string(to_string(type)), type});
  STRIDE_TRY(parse_choices("--type", scatter.type, types, &options.types));
  STRIDE_TRY(parse_choices<uint32_t>("--index", scatter.index, {{"u32", 4}, {"u64", 8}},
                                     &options.index_widths));
  using Operation = ScatterOperation;
  STRIDE_TRY(parse_choices("--operation", scatter.operation,
                           choices_of({Operation::add, Operation::min, Operation::max}),
                           &options.operations));
  STRIDE_TRY(parse_choices("--mode", scatter.mode == "both" ? "fast,reproducible" : scatter.mode,
                           choices_of({ScatterMode::fast, ScatterMode::reproducible}),
                           &options.modes));
  using Method = ScatterMethod;
  STRIDE_TRY(parse_choices("--method", scatter.method,
                           choices_of({Method::automatic, Method::direct, Method::privatized,
                                       Method::heavy_hitters, Method::partition}),
                           &options.methods));
  using Memory = ScatterMemory;
  STRIDE_TRY(parse_choices("--memory", scatter.memory,
                           choices_of({Memory::device, Memory::pinned, Memory::host}),
                           &options.memories));
  bool narrow = std::count(options.index_widths.begin(), options.index_widths.end(), 4u) > 0;
  uint64_t largest = *std::max_element(options.targets.begin(), options.targets.end());
  if (narrow && largest > uint64_t{1} << 32)
    return Status::invalid("--index u32 is for up to 2^32 targets").with_remedy("use --index u64");
  options.with_prepared = scatter.prepared;
  options.threads = chosen_threads(scatter.common);
  options.seed = scatter.seed;
  options.timing.repeats = scatter.common.repeats;
  return options;
}

uint64_t memory_bytes(const ScatterWorkloadOptions& options) {
  uint64_t sources = *std::max_element(options.sources.begin(), options.sources.end());
  uint64_t targets = *std::max_element(options.targets.begin(), options.targets.end());
  uint32_t index = *std::max_element(options.index_widths.begin(), options.index_widths.end());
  uint32_t width = 0;
  for (NumberType type : options.types) width = std::max(width, width_of(type));
  return sources * (uint64_t{width} + index) + targets * bytes_a_target;
}

void add_scatter(CLI::App* command, ScatterArguments* scatter) {
  command->add_option("--sources", scatter->sources, "Numbers of sources, with commas between")
      ->capture_default_str();
  command->add_option("--targets", scatter->targets, "Numbers of targets, with commas between")
      ->capture_default_str();
  command
      ->add_option("--distribution", scatter->distribution,
                   "Of the targets, with commas between:\n"
                   "  uniform: each is as likely as any other\n"
                   "  sorted: the same, in ascending order\n"
                   "  zipf:S: the k-th most frequent is as likely as 1 / k^S; these lie anywhere")
      ->capture_default_str();
  command
      ->add_option("--type", scatter->type,
                   "Of the sources, with commas between: i32, i64, f32, f64, and f16 and bf16, "
                   "which are added to f32")
      ->capture_default_str();
  command->add_option("--index", scatter->index, "Targets are u32, u64")->capture_default_str();
  command->add_option("--operation", scatter->operation, "add, min, max, with commas between")
      ->capture_default_str();
  command
      ->add_option("--mode", scatter->mode,
                   "How floats are added: fast, reproducible (the same bits on every run), both")
      ->capture_default_str();
  command
      ->add_option("--method", scatter->method,
                   "automatic, direct, privatized, heavy_hitters, partition, with commas between; on a "
                   "device "
                   "direct is always there, and one that a case cannot have has no times")
      ->capture_default_str();
  command
      ->add_option("--memory", scatter->memory,
                   "Of a device: where sources, targets and sums lie, with commas between: device, "
                   "pinned (host memory that it reads itself), host")
      ->capture_default_str();
  command->add_flag("--prepared", scatter->prepared, "Also prepared targets: PreparedScatter");
  command->add_option("--seed", scatter->seed, "Equal seeds give equal columns")
      ->capture_default_str();
  add_backend(command, &scatter->stride);
  add_measuring(command, &scatter->common);
  command->footer(
      "T[R[i]] += S[i]. Lists are combined. S and R are made, and lie where they are used, before\n"
      "the clock starts; T is set to zeros before each call, which is not timed. A time is that "
      "of\n"
      "one call, a median; on a device also of one of many calls on a stream. On the host, but "
      "with\n"
      "--backend cuda: a plain loop on one thread, and StrideDB on --threads; where there is a\n"
      "device, StrideDB there too. Every T is checked: integers, min and max exactly, sums of "
      "floats\n"
      "against sums of twice the precision. Results that are the same on every run have a hash.");
}

Status run_scatter_command(const ScatterArguments& scatter) {
  Result<ScatterWorkloadOptions> options = parse(scatter);
  if (!options.ok()) return options.status();
  STRIDE_TRY(check_memory(memory_bytes(*options), "sources, targets and sums",
                          "lower --sources or --targets"));
  std::unique_ptr<Backend> host;
  if (scatter.stride.backend != "cuda") host = Backend::host(options->threads);
  Result<std::unique_ptr<Backend>> device =
      device_backend(parse_backend(scatter.stride.backend), options->threads);
  if (!device.ok()) return device.status();
  return measure_and_show(
      scatter.common,
      {.title = "Scatter: T[R[i]] += S[i], seed " + std::to_string(options->seed) +
                stride_title(scatter.stride),
       .run =
           [&](const Progress& progress, ResultRows* rows) {
             return run_scatter(*options, {host.get(), device->get()}, progress, rows);
           },
       .tables = &scatter_tables,
       .plots = {{.rows = &scatter_plot, .axis = {.label = "M sources a second (logarithmic)"}}}});
}

const bool scatter_registered = WorkloadCommands::add(80, "scatter", "Scatter-add: T[R[i]] += S[i]",
                                                      &add_scatter, &run_scatter_command);

}  // namespace
}  // namespace stride::benchmark
