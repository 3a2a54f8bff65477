// The options that the commands of stride-bench share, and what all of them do at the end.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/engine_workload.h"
#include "benchmark/peers/engines.h"

namespace CLI {
class App;
}

namespace stride::benchmark {

// The tree has no engines and no directory.
struct CommonArguments {
  std::string engines = default_engines();
  std::string durability = "sync";
  unsigned repeats = 3;
  unsigned threads = 0;
  std::string directory = ".";
  std::string json, plot;
};

// Only StrideDB has these.
struct StrideArguments {
  std::string backend = "auto";
  std::string values = "host";
};

// --repeat, --threads, --json, --plot
void add_measuring(CLI::App* command, CommonArguments* common);
// --directory
void add_directory(CLI::App* command, CommonArguments* common);
// All of these, and --engines and --durability.
void add_common(CLI::App* command, CommonArguments* common);
// --backend
void add_backend(CLI::App* command, StrideArguments* stride);
// The same, and --values.
void add_stride(CLI::App* command, StrideArguments* stride);

// What they say to a workload. invalid_argument names what is off.
Status parse_engines(const CommonArguments& common, const StrideArguments& stride,
                     EngineWorkloadOptions* options);
Durability parse_durability(const std::string& name);
unsigned chosen_threads(const CommonArguments& common);
// ", backend cuda, values on the device", or less where nothing of it was asked for.
std::string stride_title(const StrideArguments& stride);

// An error now rather than after minutes of work.
Status check_output_files(const CommonArguments& common);
// resource_exhausted where this machine has less memory.
Status check_memory(uint64_t needed_bytes, const std::string& what, const std::string& remedy);

// Writes the files that were asked for.
Status write_files(const CommonArguments& common, const std::string& title,
                   const std::vector<ResultRow>& rows, const std::vector<ResultRow>& plot_rows);
// Prints the medians of all repeats with a note below, and writes the files.
Status show(const CommonArguments& common, const std::string& title,
            const std::vector<ResultRow>& all_rows, const std::string& note = {});
// Prints to standard output what stands above every table, and the tables.
void print_tables(const std::string& title, const std::string& tables);

// Where a person watches.
Progress terminal_progress();

}  // namespace stride::benchmark
