// The options that the commands of stride-bench share.
#pragma once

#include <memory>
#include <string>

#include "benchmark/harness/engine_workload.h"
#include "benchmark/peers/engines.h"
#include "gpu/backend.h"

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

// --repeat, --json, --plot
void add_results(CLI::App* command, CommonArguments* common);
// The same, and --threads.
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
// "auto", "host" or "cuda".
BackendKind parse_backend(const std::string& name);
// The same as a backend without a database. threads: of the host.
Result<std::unique_ptr<Backend>> make_backend(const std::string& name, unsigned threads);
unsigned chosen_threads(const CommonArguments& common);
// ", backend cuda, values on the device", or less where nothing of it was asked for.
std::string stride_title(const StrideArguments& stride);

// resource_exhausted where this machine has less memory.
Status check_memory(uint64_t needed_bytes, const std::string& what, const std::string& remedy);

}  // namespace stride::benchmark
