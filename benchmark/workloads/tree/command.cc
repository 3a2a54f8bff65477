// The command `stride-bench tree`.
#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/tree/arguments.h"
#include "benchmark/workloads/tree/report.h"
#include "benchmark/workloads/tree/workload.h"

namespace stride::benchmark {
namespace {

void add_tree_keys(CLI::App* command, TreeArguments* tree) {
  command
      ->add_option("--keys", tree->keys,
                   "Kinds of keys, with commas between:\n"
                   "  u32, u64: random numbers, big-endian\n"
                   "  fixed:BYTES: random bytes\n"
                   "  words: the word list of `stride-bench dictionary`\n"
                   "  FILE: a key a line (.zst is unpacked); empty and repeated lines are left out")
      ->capture_default_str();
  command->add_option("--n", tree->sizes,
                      "Numbers of keys, with commas between: at most so many lines of a file, or "
                      "random keys [all lines, or 1m]");
  command->add_option("--queries", tree->queries, "Searches in one call")->capture_default_str();
  command->add_option("--order", tree->order, "Of the queries: shuffled or sorted")
      ->check(CLI::IsMember({"shuffled", "sorted"}))
      ->capture_default_str();
  command->add_option("--hit-rate", tree->hit_rate, "Chance that a query's key is there")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", tree->seed, "Equal seeds give equal keys and queries")
      ->capture_default_str();
}

void add_tree(CLI::App* command, TreeArguments* tree) {
  add_tree_keys(command, tree);
  command
      ->add_option("--strides", tree->strides,
                   "Configurations of the tree, with semicolons between:\n"
                   "  auto: chosen from the keys\n"
                   "  16,8,8: bits of each level, the root first\n"
                   "  flavors:16,8,8: dense nodes down to single keys, no bits skipped")
      ->capture_default_str();
  command
      ->add_option("--leaf-capacity", tree->leaf_capacity,
                   "Keys that a node may have without being split, but for flavors; 0: chosen")
      ->capture_default_str();
  command->add_option("--backend", tree->backend, "auto: a CUDA device where there is one")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  command
      ->add_option(
          "--where", tree->where,
          "Memory that keys, queries and results lie in: the device's, the host's that the "
          "device reads and writes itself (pinned), or any of the host's; the same thing "
          "where there is no device")
      ->check(CLI::IsMember({"device", "pinned", "host"}))
      ->capture_default_str();
  command->add_option("--operations", tree->operations, "What is measured, with commas between")
      ->capture_default_str();
  command
      ->add_option("--latency", tree->latency,
                   "yes: also the time of one find of 1, 10, 100, ... up to 10m queries")
      ->check(CLI::IsMember({"yes", "no"}))
      ->capture_default_str();
  add_measuring(command, &tree->common);
  command->footer(
      "Every kind of keys is combined with every number and every configuration. Keys and queries\n"
      "are made, and lie where they are searched, before the clock starts; a time is that of one\n"
      "call, a median of at least --repeat calls that take 0.2 s or more. build takes keys in\n"
      "random order; prefix searches for the first half of the bytes of each query. Answers are\n"
      "checked against std::lower_bound, which has a line of its own, as std::unordered_map has "
      "up\n"
      "to 20m keys: both on the host, with --threads. The machine's limits are measured in the "
      "same\n"
      "run. The word list is found from the source tree's root.");
}

std::string tree_title(const TreeWorkloadOptions& options, const Backend& backend) {
  const std::string where = name_of(options.where, backend);
  return "Tree: " + with_commas(options.queries) + " queries, " +
         (options.sorted_queries ? "sorted" : "shuffled") + ", hit rate " +
         CLI::detail::to_string(options.hit_rate) + ", in " + where + " memory, seed " +
         std::to_string(options.seed) + ", backend " + backend.name();
}

Status run_tree_command(const TreeArguments& tree) {
  Result<TreeWorkloadOptions> options = parse_tree(tree);
  if (!options.ok()) return options.status();
  STRIDE_TRY(check_memory(tree_memory(*options), "the keys and queries", "lower --n or --queries"));
  Result<std::unique_ptr<Backend>> backend = make_backend(tree.backend, tree.common.threads);
  if (!backend.ok()) return backend.status();
  return measure_and_show(
      tree.common,
      {.title = tree_title(*options, **backend),
       .run = [&](const Progress& progress,
                  ResultRows* rows) { return run_tree(*options, backend->get(), progress, rows); },
       .tables = &tree_tables,
       .plots = {{.rows = &tree_plot_rows}}});
}

const bool tree_registered = WorkloadCommands::add(
    30, "tree", "The index alone: build, search, latency", &add_tree, &run_tree_command);

}  // namespace
}  // namespace stride::benchmark
