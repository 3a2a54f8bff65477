#include "benchmark/harness/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <limits>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/common_arguments.h"
#include "benchmark/harness/text_table.h"
#include "benchmark/workloads/accumulate/command.h"
#include "benchmark/workloads/crossover/command.h"
#include "benchmark/workloads/dedup/command.h"
#include "benchmark/workloads/dedup/dictionary.h"
#include "benchmark/workloads/lookup/command.h"
#include "benchmark/workloads/lpm/command.h"
#include "benchmark/workloads/map/command.h"
#include "benchmark/workloads/planner/command.h"
#include "benchmark/workloads/scatter/command.h"
#include "benchmark/workloads/sts/workload.h"
#include "benchmark/workloads/tree/arguments.h"
#include "benchmark/workloads/tree/report.h"
#include "benchmark/workloads/tree/workload.h"

namespace stride::benchmark {
namespace {

struct StsArguments {
  StrideArguments stride;
  std::string records = "1m";
  uint32_t flows = 4;
  double randomness = 1;
  uint64_t seed = 1;
  std::string batches = "1,1k,100k,1m";
};

struct DictionaryArguments {
  std::string words = "benchmark/data/words_en_scowl_insane.txt.zst";
  std::vector<std::string> texts = {"benchmark/data/text_austen_sensesensibility.txt.zst",
                                    "benchmark/data/text_austen_prideprejudice.txt.zst",
                                    "benchmark/data/text_austen_mansfieldpark.txt.zst",
                                    "benchmark/data/text_kjv_bible.txt.zst"};
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
  command->footer(
      "Records are made in memory, in columns, before the clock starts, for every engine alike.\n"
      "Looked up keys are random, 10 % of them are not there; values are copied out. Memory is\n"
      "what a phase needs beyond the records that the benchmark itself holds.");
}

void add_dictionary(CLI::App* command, DictionaryArguments* dictionary) {
  command->add_option("--words", dictionary->words, "File with a word a line (.zst is unpacked)")
      ->capture_default_str();
  command
      ->add_option("--text", dictionary->texts,
                   "Files whose words are looked up: as written, then in lower case")
      ->capture_default_str();
  command->footer(
      "Words are ASCII letters with apostrophes inside. A text's words are looked up\n"
      "in one batch, and those that are not there once more in lower case; splitting\n"
      "the text is not timed. The defaults are found from the source tree's root.");
}

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
      ->add_option("--where", tree->where,
                   "Memory that keys, queries and results lie in: the device's or the host's, the "
                   "same thing where there is no device")
      ->check(CLI::IsMember({"device", "host"}))
      ->capture_default_str();
  command->add_option("--operations", tree->operations, "What is measured, with commas between")
      ->capture_default_str();
  command
      ->add_option("--latency", tree->latency,
                   "yes: also the time of one find of 1, 10, 100, ... up to 10m queries")
      ->check(CLI::IsMember({"yes", "no"}))
      ->capture_default_str();
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

std::string sts_title(const StsWorkloadOptions& options, const CommonArguments& common,
                      const StsArguments& sts) {
  return "STS workload: " + with_commas(options.records) + " records, " +
         std::to_string(options.flows) + " flows, randomness " +
         CLI::detail::to_string(options.randomness) + ", seed " + std::to_string(options.seed) +
         ", durability " + common.durability + stride_title(sts.stride) + ", median of " +
         std::to_string(options.repeats);
}

Status run_sts_command(const CommonArguments& common, const StsArguments& sts) {
  StsWorkloadOptions options;
  Result<uint64_t> records =
      parse_count("--records", sts.records, std::numeric_limits<uint32_t>::max() - 1);
  if (!records.ok()) return records.status();
  Result<std::vector<uint64_t>> batches =
      parse_counts("a size in --batches", sts.batches, 16'000'000);
  if (!batches.ok()) return batches.status();
  STRIDE_TRY(parse_engines(common, sts.stride, &options));
  if (std::isnan(sts.randomness)) return Status::invalid("--randomness must be from 0 to 1");
  // What run_sts itself holds: the records, their order, and the queries.
  constexpr uint64_t bytes_a_record = 100;
  STRIDE_TRY(check_memory(*records * bytes_a_record,
                          std::to_string(*records) + " records, before any engine runs,",
                          "lower --records"));
  STRIDE_TRY(check_output_files(common));
  options.records = *records;
  options.flows = sts.flows;
  options.randomness = sts.randomness;
  options.seed = sts.seed;
  options.batches = *batches;
  std::vector<ResultRow> rows;
  STRIDE_TRY(run_sts(options, terminal_progress(), &rows));
  return show(common, sts_title(options, common, sts), rows);
}

std::string summary(const std::vector<TextSummary>& texts) {
  TextTable table;
  table.add({"text", "words", "found", "%"});
  table.add_rule();
  for (const TextSummary& text : texts) {
    double share =
        text.words ? static_cast<double>(text.hits) / static_cast<double>(text.words) : 0;
    table.add({text.name, std::to_string(text.words), std::to_string(text.hits),
               three_digits(100 * share)});
  }
  return table.to_string() + "\n";
}

Status run_dictionary_command(const CommonArguments& common,
                              const DictionaryArguments& dictionary) {
  Result<std::vector<EngineConfiguration>> engines = choose_engines(common.engines);
  if (!engines.ok()) return engines.status();
  STRIDE_TRY(check_output_files(common));
  DictionaryOptions options;
  options.words = dictionary.words;
  options.texts = dictionary.texts;
  options.engines = *engines;
  options.durability = parse_durability(common.durability);
  options.repeats = common.repeats;
  options.threads = chosen_threads(common);
  options.directory = common.directory;
  std::vector<TextSummary> texts;
  std::vector<ResultRow> rows;
  STRIDE_TRY(run_dictionary(options, terminal_progress(), &texts, &rows));
  std::cout << summary(texts);
  return show(common, "Dictionary: median of " + std::to_string(options.repeats), rows);
}

std::string tree_title(const TreeWorkloadOptions& options, const Backend& backend) {
  std::string where = backend.has_device() && options.in_backend ? "device" : "host";
  return "Tree: " + with_commas(options.queries) + " queries, " +
         (options.sorted_queries ? "sorted" : "shuffled") + ", hit rate " +
         CLI::detail::to_string(options.hit_rate) + ", in " + where + " memory, seed " +
         std::to_string(options.seed) + ", backend " + backend.name();
}

Status run_tree_command(const CommonArguments& common, const TreeArguments& tree) {
  Result<TreeWorkloadOptions> options = parse_tree(tree);
  if (!options.ok()) return options.status();
  options->timing.repeats = common.repeats;
  options->threads = chosen_threads(common);
  STRIDE_TRY(check_memory(tree_memory(*options), "the keys and queries", "lower --n or --queries"));
  STRIDE_TRY(check_output_files(common));
  Result<std::unique_ptr<Backend>> backend = make_backend(tree.backend, common.threads);
  if (!backend.ok()) return backend.status();
  std::vector<ResultRow> rows;
  STRIDE_TRY(run_tree(*options, backend->get(), terminal_progress(), &rows));
  std::string title = tree_title(*options, **backend);
  print_tables(title, tree_tables(rows));
  return write_files(common, title, rows, tree_plot_rows(rows));
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("StrideDB and its peers side by side", "stride-bench");
  app.require_subcommand(1);
  CommonArguments common;
  StsArguments sts;
  CLI::App* sts_command = app.add_subcommand("sts", "The STS DatabaseBenchmark workload");
  add_sts(sts_command, &sts);
  add_common(sts_command, &common);
  DictionaryArguments dictionary;
  CLI::App* dictionary_command = app.add_subcommand("dictionary", "Words of books in a word list");
  add_dictionary(dictionary_command, &dictionary);
  add_common(dictionary_command, &common);
  TreeArguments tree;
  CLI::App* tree_command = app.add_subcommand("tree", "The index alone: build, search, latency");
  add_tree(tree_command, &tree);
  add_measuring(tree_command, &common);
  LookupArguments lookup;
  CLI::App* lookup_command =
      app.add_subcommand("lookup", "Bulk load and lookups beside the limits of the machine");
  add_lookup(lookup_command, &lookup);
  CrossoverArguments crossover;
  CLI::App* crossover_command =
      app.add_subcommand("crossover", "From which batch on a device is faster than the host");
  add_crossover(crossover_command, &crossover);
  LpmArguments lpm;
  CLI::App* lpm_command = app.add_subcommand("lpm", "Longest-prefix match of routes");
  add_lpm(lpm_command, &lpm);
  DedupArguments dedup;
  CLI::App* dedup_command =
      app.add_subcommand("dedup", "Bulk find-or-put of vectors and byte strings");
  add_dedup(dedup_command, &dedup);
  ScatterArguments scatter;
  CLI::App* scatter_command = app.add_subcommand("scatter", "Scatter-add: T[R[i]] += S[i]");
  add_scatter(scatter_command, &scatter);
  AccumulateArguments accumulate;
  CLI::App* accumulate_command =
      app.add_subcommand("accumulate", "Deltas added to numbers by key, beside a merge operator");
  add_accumulate(accumulate_command, &accumulate);
  MapArguments map;
  CLI::App* map_command =
      app.add_subcommand("map", "Weights mapping: T[R[i]] += S[i], with R in a table");
  add_map(map_command, &map);
  PlannerArguments planner;
  CLI::App* planner_command =
      app.add_subcommand("planner", "How good the trees are that are chosen from the keys");
  add_planner(planner_command, &planner);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Status status = *sts_command          ? run_sts_command(common, sts)
                  : *dictionary_command ? run_dictionary_command(common, dictionary)
                  : *lookup_command     ? run_lookup_command(lookup)
                  : *crossover_command  ? run_crossover_command(crossover)
                  : *lpm_command        ? run_lpm_command(lpm)
                  : *dedup_command      ? run_dedup_command(dedup)
                  : *scatter_command    ? run_scatter_command(scatter)
                  : *accumulate_command ? run_accumulate_command(accumulate)
                  : *map_command        ? run_map_command(map)
                  : *planner_command    ? run_planner_command(planner)
                                        : run_tree_command(common, tree);
  if (status.ok()) return 0;
  std::cerr << "stride-bench: " << status.to_string() << "\n";
  return status.code() == StatusCode::invalid_argument ? 2 : 1;
}

}  // namespace stride::benchmark
