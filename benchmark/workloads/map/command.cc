#include "benchmark/workloads/map/command.h"

#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/workloads/map/workload.h"

namespace stride::benchmark {
namespace {

// Targets of the mapping table have 4 bytes.
constexpr uint64_t most_targets = 1'000'000'000;
constexpr uint64_t max_sources = 1'000'000'000;
constexpr uint64_t max_calls = 1'000'000;

template <class Choice>
Status parse_choices(const std::string& option, const std::string& list,
                     const std::vector<std::pair<std::string, Choice>>& known,
                     std::vector<Choice>* choices) {
  choices->clear();
  std::string names;
  for (const auto& [name, choice] : known) names += (names.empty() ? "" : ", ") + name;
  for (const std::string& name : split_list(list, ',')) {
    auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == name; });
    if (found == known.end())
      return Status::invalid(option + ": unknown '" + name + "': there are " + names);
    choices->push_back(found->second);
  }
  return choices->empty() ? Status::invalid(option + " is empty: " + names) : Status();
}

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
  auto sources = parse_count("--sources", map.sources, max_sources);
  if (!sources.ok()) return sources.status();
  options->sources = *sources;
  auto targets = parse_count("--targets", map.targets, most_targets);
  if (!targets.ok()) return targets.status();
  options->targets = *targets;
  auto calls = parse_count("--calls", map.calls, max_calls);
  if (!calls.ok()) return calls.status();
  options->calls = *calls;
  options->backend = map.stride.backend == "host"   ? BackendKind::host
                     : map.stride.backend == "cuda" ? BackendKind::cuda
                                                    : BackendKind::automatic;
  options->threads = chosen_threads(map.common);
  options->directory = map.common.directory;
  options->seed = map.seed;
  options->timing.repeats = map.common.repeats;
  return {};
}

}  // namespace

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
  STRIDE_TRY(check_output_files(map.common));
  std::vector<ResultRow> rows;
  STRIDE_TRY(run_map(options, terminal_progress(), &rows));
  std::string title = "Weights mapping: keys " + options.keys.name + ", seed " +
                      std::to_string(options.seed) + stride_title(map.stride);
  print_tables(title, map_tables(rows));
  std::vector<ResultRow> plot = rows;
  for (ResultRow& row : plot)
    if (options.types.size() > 1) row.phase += " " + row.texts["type"];
  return write_files(map.common, title, rows, plot);
}

}  // namespace stride::benchmark
