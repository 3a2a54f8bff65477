// The command `stride-bench planner`.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "benchmark/datasets/planner_keys.h"
#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/planner/report.h"
#include "benchmark/workloads/planner/workload.h"

namespace stride::benchmark {
namespace {

struct PlannerArguments {
  CommonArguments common;
  std::string data = "words,urls,ipv6,kmers,clustered,zipf_gaps,timestamps";
  std::string keys = "1m";
  std::string queries;
  std::string order = "random";
  std::string backend = "auto";
  uint64_t seed = 1;
  uint32_t trees = 0;
  bool no_flavors = false;
  std::string training, access_costs;
};

Result<PlannerWorkloadOptions> parse(const PlannerArguments& planner, bool device) {
  PlannerWorkloadOptions options;
  for (const std::string& name : split_list(planner.data, ',')) options.data.push_back(name);
  if (options.data.empty()) return Status::invalid("--data is empty: words,u64, say");
  Result<std::vector<uint64_t>> keys = parse_counts("--n", planner.keys, max_index_keys);
  if (!keys.ok()) return keys.status();
  std::string asked = planner.queries.empty() ? (device ? "4m" : "500k") : planner.queries;
  Result<uint64_t> queries = parse_count("--queries", asked, max_index_keys);
  if (!queries.ok()) return queries.status();
  options.keys = *keys;
  options.queries = *queries;
  options.locality = planner.order == "sorted" ? QueryLocality::sorted : QueryLocality::random;
  options.seed = planner.seed;
  options.trees = planner.trees;
  options.flavors = !planner.no_flavors;
  options.rounds = std::max(3u, 2 * planner.common.repeats + 1);
  options.threads = chosen_threads(planner.common);
  options.training = planner.training;
  options.access_costs = planner.access_costs;
  return options;
}

void add_planner(CLI::App* command, PlannerArguments* planner) {
  command
      ->add_option("--data", planner->data,
                   "Data sets, with commas between:\n" + planner_key_names())
      ->capture_default_str();
  command
      ->add_option("--n", planner->keys, "Keys of each, at most; with commas between, each of them")
      ->capture_default_str();
  command->add_option("--queries", planner->queries,
                      "Searches in one call [500k, or 4m on a device]");
  command->add_option("--order", planner->order, "Of the queries: random or sorted")
      ->check(CLI::IsMember({"random", "sorted"}))
      ->capture_default_str();
  command->add_option("--backend", planner->backend, "auto: a CUDA device where there is one")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
  command->add_option("--seed", planner->seed, "Equal seeds give equal keys and queries")
      ->capture_default_str();
  command->add_option("--trees", planner->trees,
                      "So many random trees in place of the list; 0: the list");
  command->add_flag("--no-flavors", planner->no_flavors, "Leaves Flavors' lists of strides out");
  command->add_option("--training", planner->training,
                      "File to append what was measured to, for benchmark/tools/train_planner.py");
  command->add_option("--access-costs", planner->access_costs,
                      "What reads of memory cost, as a former run has printed it; else measured");
  add_measuring(command, &planner->common);
  command->footer(
      "Regret: the time of a find with the chosen tree over that with the fastest of a broad list\n"
      "of trees within the same limit of memory, less 1. `flavors` chooses among Flavors' lists "
      "of\n"
      "strides. Data files are found from the source tree's root.");
}

Status run_planner_command(const PlannerArguments& planner) {
  Result<std::unique_ptr<Backend>> backend = make_backend(planner.backend, planner.common.threads);
  if (!backend.ok()) return backend.status();
  Result<PlannerWorkloadOptions> options = parse(planner, (*backend)->has_device());
  if (!options.ok()) return options.status();
  return measure_and_show(
      planner.common,
      {.title = "Planner: at most " + planner.keys + " keys, " + with_commas(options->queries) +
                " " + planner.order + " queries, backend " + (*backend)->name(),
       .run =
           [&](const Progress& progress, ResultRows* rows) {
             return run_planner(*options, backend->get(), progress, rows);
           },
       .tables = &planner_tables,
       .plots = {{.rows = &planner_plot_rows}}});
}

const bool planner_registered =
    WorkloadCommands::add(110, "planner", "How good the trees are that are chosen from the keys",
                          &add_planner, &run_planner_command);

}  // namespace
}  // namespace stride::benchmark
