// The command `stride-bench commits`.
#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/commits/workload.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct CommitsArguments {
  CommonArguments common{.engines = "all"};
  std::string records = "1m";
  std::string writers = "1";
  double seconds = 5;
  uint32_t value_bytes = 100;
  uint64_t seed = 1;
};

constexpr uint64_t max_commits = 1'000'000'000;
constexpr uint64_t max_writers = 1024;

Result<CommitsOptions> parse_commits(const CommitsArguments& commits) {
  CommitsOptions options;
  Result<uint64_t> records = parse_count("--records", commits.records, max_commits);
  if (!records.ok()) return records.status();
  options.records = *records;
  options.threads.clear();
  for (const std::string& text : split_list(commits.writers, ',')) {
    Result<uint64_t> threads = parse_count("--writers", text, max_writers);
    if (!threads.ok()) return threads.status();
    options.threads.push_back(static_cast<unsigned>(*threads));
  }
  if (options.threads.empty()) return Status::invalid("--writers is empty: give 1,16");
  Result<std::vector<SmallStoreConfiguration>> stores =
      choose_small_stores("--engines", commits.common.engines);
  if (!stores.ok()) return stores.status();
  options.stores = std::move(*stores);
  options.seconds = commits.seconds;
  options.value_bytes = commits.value_bytes;
  options.durability = parse_durability(commits.common.durability);
  options.directory = commits.common.directory;
  options.repeats = commits.common.repeats;
  options.seed = commits.seed;
  return options;
}

void add_commits(CLI::App* command, CommitsArguments* commits) {
  command->add_option("--records", commits->records, "Commits of a phase, at most")
      ->capture_default_str();
  command->add_option("--seconds", commits->seconds, "That a phase takes, at most")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command
      ->add_option("--writers", commits->writers,
                   "Threads that commit, and then read, at once: numbers with commas between")
      ->capture_default_str();
  command->add_option("--value-bytes", commits->value_bytes, "Of each value; keys have 16")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--engines,--engine", commits->common.engines, small_stores_help());
  command
      ->add_option("--durability", commits->common.durability,
                   "What a commit survives: sync (power loss), flush (a killed process), none")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  command->add_option("--seed", commits->seed, "Equal seeds give equal keys")
      ->capture_default_str();
  add_directory(command, &commits->common);
  add_measuring(command, &commits->common);
  command->footer(
      "put_N commits one record at a time from each of N threads, get_N reads random ones of\n"
      "them, reopen_N closes the database and opens it. Every value that is read is checked.\n"
      "With several numbers of threads --plot p.svg draws p-threads.svg too: calls a second by\n"
      "the number of threads.");
}

Status run_commits_command(const CommitsArguments& commits) {
  Result<CommitsOptions> options = parse_commits(commits);
  if (!options.ok()) return options.status();
  std::string title = "Commits of one record: 16 + " + std::to_string(options->value_bytes) +
                      " bytes, durability " + commits.common.durability + ", median of " +
                      std::to_string(options->repeats);
  std::vector<Plot> by_threads;
  if (options->threads.size() > 1) by_threads = {{.suffix = "-threads", .draw = &threads_svg}};
  return measure_and_compare(
      commits.common, title,
      [&](const Progress& progress, ResultRows* rows) {
        return run_commits(*options, progress, rows);
      },
      &latency_table, by_threads);
}

const bool commits_registered = WorkloadCommands::add(
    15, "commits", "Commits of one record each, from one thread and from many", &add_commits,
    &run_commits_command);

}  // namespace
}  // namespace stride::benchmark
