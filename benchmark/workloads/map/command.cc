// The command `stride-bench map`.
#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/map/workload.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct MapArguments {
  CommonArguments common{.engines = "stride,loop"};
  StrideArguments stride;
  std::string sources = "4m";
  std::string targets = "500k";
  std::string keys = "u64";
  std::string types = "f32";
  std::string modes = "fast,reproducible";
  std::string calls = "100";
  uint64_t seed = 1;
};

// A target takes 4 bytes in the table that maps keys to targets.
constexpr uint64_t max_map_targets = 1'000'000'000;
constexpr uint64_t max_map_sources = 1'000'000'000;
constexpr uint64_t max_calls = 1'000'000;

enum class Who { stride, loop };

Status parse(const MapArguments& map, MapOptions* options) {
  std::vector<Who> engines;
  STRIDE_TRY(parse_choices<Who>("--engines", map.common.engines,
                                {{"stride", Who::stride}, {"loop", Who::loop}}, &engines));
  auto wanted = [&](Who who) { return std::count(engines.begin(), engines.end(), who) > 0; };
  options->with_stride = wanted(Who::stride);
  options->with_loop = wanted(Who::loop);
  STRIDE_TRY(parse_choices<NumberType>("--type", map.types,
                                       {{"i32", NumberType::i32},
                                        {"i64", NumberType::i64},
                                        {"f32", NumberType::f32},
                                        {"f64", NumberType::f64}},
                                       &options->types));
  STRIDE_TRY(parse_choices<ScatterMode>(
      "--mode", map.modes,
      {{"fast", ScatterMode::fast}, {"reproducible", ScatterMode::reproducible}}, &options->modes));
  auto keys = parse_key_kind(map.keys);
  if (!keys.ok()) return keys.status();
  options->keys = *keys;
  auto sources = parse_count("--sources", map.sources, max_map_sources);
  if (!sources.ok()) return sources.status();
  options->sources = *sources;
  auto targets = parse_count("--targets", map.targets, max_map_targets);
  if (!targets.ok()) return targets.status();
  options->targets = *targets;
  auto calls = parse_count("--calls", map.calls, max_calls);
  if (!calls.ok()) return calls.status();
  options->calls = *calls;
  options->backend = parse_backend(map.stride.backend);
  options->threads = chosen_threads(map.common);
  options->directory = map.common.directory;
  options->seed = map.seed;
  options->timing.repeats = map.common.repeats;
  return {};
}

void add_map(CLI::App* command, MapArguments* map) {
  command->add_option("--sources", map->sources, "Rows of the mapping table, each a source")
      ->capture_default_str();
  command->add_option("--targets", map->targets, "Numbers that T has")->capture_default_str();
  command
      ->add_option("--keys", map->keys,
                   "Of the sources: u32, u64, fixed:BYTES (random), words, or the lines of a FILE")
      ->capture_default_str();
  command->add_option("--type", map->types, "Of S and T, with commas between: f32, f64, i32, i64")
      ->capture_default_str();
  command->add_option("--mode", map->modes, "Of plans: fast, reproducible, with a comma between")
      ->capture_default_str();
  command
      ->add_option("--calls", map->calls, "That are started on a device's stream before the wait")
      ->capture_default_str();
  command
      ->add_option("--engines,--engine", map->common.engines, "stride, loop, with a comma between")
      ->capture_default_str();
  command->add_option("--seed", map->seed, "Equal seeds give equal sources, targets and weights")
      ->capture_default_str();
  add_backend(command, &map->stride);
  add_directory(command, &map->common);
  add_measuring(command, &map->common);
  command->footer(
      "T[R[i]] += S[i], where a table has the target of each source's key. prepare looks the keys\n"
      "up and makes a plan of their targets, map applies it to one S, whole is map_weights(): "
      "both\n"
      "at once. loop is std::unordered_map and a loop, on one thread. On the host, but with\n"
      "--backend cuda: with one thread and with all; on a device: S and T in host memory, in its\n"
      "memory, and there as a stream of calls. T is cleared before each call, untimed. A time is "
      "a\n"
      "median of at least --repeat calls that take 0.2 s or more. Every T is checked: integers\n"
      "exactly, floats against sums in doubles, reproducible ones by their bits, too.");
}

Status run_map_command(const MapArguments& map) {
  MapOptions options;
  STRIDE_TRY(parse(map, &options));
  // Keys, in memory and in the database, a map of them, targets, S and a plan.
  uint64_t key_bytes = std::max<uint64_t>(options.keys.width, 16);
  STRIDE_TRY(check_memory(options.sources * (3 * key_bytes + 100) + options.targets * 64,
                          "keys and weights", "lower --sources or --targets"));
  auto plot_rows = [&](ResultRows rows) {
    for (ResultRow& row : rows)
      if (options.types.size() > 1) row.phase += " " + row.texts["type"];
    return rows;
  };
  return measure_and_show(
      map.common, {.title = "Weights mapping: keys " + options.keys.name + ", seed " +
                            std::to_string(options.seed) + stride_title(map.stride),
                   .run = [&](const Progress& progress,
                              ResultRows* rows) { return run_map(options, progress, rows); },
                   .tables = &map_tables,
                   .plots = {{.rows = plot_rows}}});
}

const bool map_registered = WorkloadCommands::add(
    100, "map", "Weights mapping: T[R[i]] += S[i], with R in a table", &add_map, &run_map_command);

}  // namespace
}  // namespace stride::benchmark
