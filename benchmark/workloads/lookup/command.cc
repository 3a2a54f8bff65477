// The command `stride-bench lookup`.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/lookup/workload.h"
#include "benchmark/workloads/measurement.h"
#include "benchmark/workloads/random_arguments.h"

namespace stride::benchmark {
namespace {

struct LookupArguments {
  CommonArguments common{.engines = fastest_engines()};
  StrideArguments stride;
  RandomArguments random;
  std::string batches = "1,1k,100k,1m";
  std::string callers = "1";
  bool cold = false;
  std::string memory_limit;  // empty: not given
};

constexpr uint64_t max_lookup_batch = 16'000'000;
constexpr uint64_t max_callers = 1024;
constexpr uint64_t max_memory_limit = uint64_t{1} << 48;

Result<LookupWorkloadOptions> parse(const LookupArguments& lookup) {
  LookupWorkloadOptions options;
  STRIDE_TRY(parse_engines(lookup.common, lookup.stride, &options));
  Result<RandomRecordsOptions> records = parse_random(lookup.random);
  if (!records.ok()) return records.status();
  Result<std::vector<uint64_t>> batches =
      parse_counts("a size in --batch", lookup.batches, max_lookup_batch);
  if (!batches.ok()) return batches.status();
  if (batches->empty()) return Status::invalid("--batch is empty");
  options.records = *records;
  options.batches = *batches;
  options.cold = lookup.cold;
  Result<uint64_t> callers = parse_count("--callers", lookup.callers, max_callers);
  if (!callers.ok()) return callers.status();
  options.callers = static_cast<unsigned>(*callers);
  auto is_stride = [](const EngineConfiguration& engine) { return engine.engine == "stride"; };
  if (options.callers > 1 && (lookup.cold || !std::ranges::all_of(options.engines, is_stride)))
    return Status::invalid("--callers goes with --engines stride, and not with --cold");
  if (lookup.memory_limit.empty()) return options;
  if (!lookup.cold) return Status::invalid("--memory-limit goes with --cold");
  Result<uint64_t> limit = parse_count("--memory-limit", lookup.memory_limit, max_memory_limit);
  if (!limit.ok()) return limit.status();
  options.cold_memory_bytes = *limit;
  return options;
}

std::string title(const LookupWorkloadOptions& options, const LookupArguments& lookup) {
  std::string how =
      options.cold ? ", cold, memory limit " + with_commas(options.cold_memory_bytes) + " bytes"
                   : "";
  if (options.callers > 1) how = ", " + std::to_string(options.callers) + " callers";
  return "Lookup: " + random_title(options.records) + ", durability " + lookup.common.durability +
         stride_title(lookup.stride) + how + ", median of " + std::to_string(options.repeats);
}

// Empty where the system forgot the files as it was asked to.
std::string cold_note(const std::vector<ResultRow>& rows) {
  uint64_t cached = 0, stored = 0;
  for (const ResultRow& row : rows) {
    auto bytes = row.numbers.find("cached_bytes");
    if (bytes == row.numbers.end() || bytes->second <= static_cast<double>(cached)) continue;
    cached = static_cast<uint64_t>(bytes->second);
    stored = row.bytes_on_disk;
  }
  if (cached == 0) return {};
  return "cold is not quite cold here: the system kept up to " + with_commas(cached) + " of " +
         with_commas(stored) + " bytes in its page cache";
}

void add_lookup(CLI::App* command, LookupArguments* lookup) {
  add_random(command, &lookup->random);
  command
      ->add_option("--batch", lookup->batches,
                   "Sizes of the batches that are looked up, with commas between")
      ->capture_default_str();
  add_stride(command, &lookup->stride);
  command
      ->add_option("--callers", lookup->callers,
                   "Threads that look up batches of their own at once; with --engines stride")
      ->capture_default_str();
  command->add_flag("--cold", lookup->cold,
                    "Look up in databases that have just been opened, with none of their files in "
                    "the page cache");
  command->add_option("--memory-limit", lookup->memory_limit,
                      "With --cold: bytes of memory that StrideDB may keep segments in "
                      "(Options::memory_limit_bytes) [64m]");
  add_common(command, &lookup->common);
  command->footer(
      "load: all records, until they are as durable as asked. lookup: values copied into one\n"
      "column; find: references to them, where the engine has that. 10 % of the keys are not\n"
      "there; answers are checked.\n"
      "cold: after the load each database is closed; before every batch it is closed again, its\n"
      "files are synced and dropped from the page cache (as far as the system does that: see\n"
      "cached_bytes of the JSON rows), and it is opened, which is not timed. What an engine reads\n"
      "into memory when it opens is not cold, as all of hash and vector. warm: the same batch\n"
      "once more. Both are means of 3 to 32 such openings.\n"
      "Limits, measured in the same run and no database: gather copies values from random places\n"
      "to one column, as a lookup that need not search; reads reads a key at a random place for\n"
      "each query; bus brings queries to the device and answers back, both at once; disk writes a\n"
      "file past the page cache and syncs it; memory copy, where the load is not synced, copies\n"
      "the records to fresh memory. Of several loops that could do it the fastest counts.");
}

Status run_lookup_command(const LookupArguments& lookup) {
  Result<LookupWorkloadOptions> options = parse(lookup);
  if (!options.ok()) return options.status();
  return measure_and_compare(
      lookup.common, title(*options, lookup),
      [&](const Progress& progress, ResultRows* rows) {
        return run_lookup(*options, progress, rows);
      },
      &cold_note);
}

const bool lookup_registered =
    WorkloadCommands::add(40, "lookup", "Bulk load and lookups beside the limits of the machine",
                          &add_lookup, &run_lookup_command);

}  // namespace
}  // namespace stride::benchmark
