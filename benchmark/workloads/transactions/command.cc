// The command `stride-bench transactions`.
#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/transactions/workload.h"

namespace stride::benchmark {
namespace {

struct TransactionsArguments {
  CommonArguments common{.engines = "all"};
  std::string records = "1m";
  std::string clients = "16";
  std::string distribution = "uniform,zipf:0.99";
  double seconds = 5;
  uint32_t reads = 4, writes = 2;
  uint32_t value_bytes = 100;
  uint64_t seed = 1;
};

constexpr uint64_t max_counters = 1'000'000'000;
constexpr uint64_t max_transaction_threads = 1024;

Status parse_keys(const std::string& list, TransactionsOptions* options) {
  for (const std::string& text : split_list(list, ',')) {
    Result<KeyChoice> keys = parse_key_choice(text);
    if (!keys.ok()) return keys.status();
    if (keys->distribution == KeyDistribution::latest)
      return Status::invalid("--distribution must be uniform or zipf:THETA: none is inserted");
    options->keys.push_back(*keys);
  }
  return options->keys.empty() ? Status::invalid("--distribution is empty: uniform,zipf:0.99")
                               : Status();
}

Result<TransactionsOptions> parse_transactions(const TransactionsArguments& given) {
  TransactionsOptions options;
  Result<uint64_t> records = parse_count("--records", given.records, max_counters);
  if (!records.ok()) return records.status();
  options.records = *records;
  options.threads.clear();
  for (const std::string& text : split_list(given.clients, ',')) {
    Result<uint64_t> threads = parse_count("--clients", text, max_transaction_threads);
    if (!threads.ok()) return threads.status();
    options.threads.push_back(static_cast<unsigned>(*threads));
  }
  if (options.threads.empty()) return Status::invalid("--clients is empty: give 1,16");
  STRIDE_TRY(parse_keys(given.distribution, &options));
  if (given.writes > given.reads)
    return Status::invalid("--writes must not be more than --reads: what is changed is read first");
  if (given.reads > options.records)
    return Status::invalid("--reads must not be more than --records: they are all different");
  Result<std::vector<SmallStoreConfiguration>> stores =
      choose_small_stores("--engines", given.common.engines);
  if (!stores.ok()) return stores.status();
  options.stores = std::move(*stores);
  options.seconds = given.seconds;
  options.reads = given.reads;
  options.writes = given.writes;
  options.value_bytes = given.value_bytes;
  options.durability = parse_durability(given.common.durability);
  options.directory = given.common.directory;
  options.repeats = given.common.repeats;
  options.seed = given.seed;
  return options;
}

void add_transactions(CLI::App* command, TransactionsArguments* given) {
  given->common.durability = "flush";
  command->add_option("--records", given->records, "That are there, each with a counter")
      ->capture_default_str();
  command->add_option("--seconds", given->seconds, "That a phase takes")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  command->add_option("--clients", given->clients, "Threads at once: numbers with commas between")
      ->capture_default_str();
  command->add_option("--reads", given->reads, "Records that a transaction reads")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--writes", given->writes, "And of these, that it changes")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--distribution", given->distribution,
                   "Which records: uniform; zipf:THETA, some much more often than others")
      ->capture_default_str();
  command->add_option("--value-bytes", given->value_bytes, "Of each value; keys have 16")
      ->check(CLI::Range(8, 1 << 20))
      ->capture_default_str();
  command->add_option("--engines,--engine", given->common.engines, small_stores_help());
  command
      ->add_option("--durability", given->common.durability,
                   "What a commit survives: sync (power loss), flush (a killed process), none")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  command->add_option("--seed", given->seed, "Equal seeds give equal keys")->capture_default_str();
  add_directory(command, &given->common);
  add_measuring(command, &given->common);
  command->footer(
      "Each transaction reads some records and adds one to the counters of a few of them. Where\n"
      "others have changed one meanwhile it is done again, which counts as a conflict. RocksDB is\n"
      "its OptimisticTransactionDB with GetForUpdate; LMDB's writers take turns. In the end the\n"
      "counters must add up to the commits.");
}

Status run_transactions_command(const TransactionsArguments& given) {
  Result<TransactionsOptions> options = parse_transactions(given);
  if (!options.ok()) return options.status();
  std::string title = "Transactions of " + std::to_string(given.reads) + " reads and " +
                      std::to_string(given.writes) + " writes: " + given.records +
                      " records of 16 + " + std::to_string(given.value_bytes) +
                      " bytes, durability " + given.common.durability + ", median of " +
                      std::to_string(options->repeats);
  return measure_and_compare(
      given.common, title,
      [&](const Progress& progress, ResultRows* rows) {
        return run_transactions(*options, progress, rows);
      },
      &transactions_table);
}

const bool transactions_registered =
    WorkloadCommands::add(17, "transactions", "Transactions that read and write, in many threads",
                          &add_transactions, &run_transactions_command);

}  // namespace
}  // namespace stride::benchmark
