// The options of `stride-bench tree`, as they are written and as the workload takes them.
#pragma once

#include <memory>
#include <string>

#include "benchmark/workloads/tree/workload.h"
#include "gpu/backend.h"

namespace stride::benchmark {

struct TreeArguments {
  std::string keys = "u64";
  std::string sizes;  // empty: as TreeKeys::make() has it
  std::string queries = "10m";
  std::string order = "shuffled";
  double hit_rate = 1;
  std::string strides = "auto";
  uint32_t leaf_capacity = 0;
  std::string backend = "auto";
  std::string where = "device";
  std::string operations = "build,build_sorted,find,lower_bound,prefix";
  std::string latency = "no";
  uint64_t seed = 1;
};

// invalid_argument says which option is off. What is common to all workloads is left to the caller.
Result<TreeWorkloadOptions> parse_tree(const TreeArguments& arguments);

// "auto", "host" or "cuda". threads: of the host.
Result<std::unique_ptr<Backend>> make_backend(const std::string& name, unsigned threads);

// Bytes of host memory that the keys and queries of the largest case take, and the copies that are
// made to check what is built. Files count as nothing.
uint64_t tree_memory(const TreeWorkloadOptions& options);

}  // namespace stride::benchmark
