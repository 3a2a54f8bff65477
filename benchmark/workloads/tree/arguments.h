// The options of `stride-bench tree`, as they are written and as the workload takes them.
#pragma once

#include <string>

#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/tree/workload.h"

namespace stride::benchmark {

struct TreeArguments {
  CommonArguments common;
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

// invalid_argument says which option is off.
Result<TreeWorkloadOptions> parse_tree(const TreeArguments& arguments);

// Bytes of host memory that the keys and queries of the largest case take, and the copies that are
// made to check what is built. Files count as nothing.
uint64_t tree_memory(const TreeWorkloadOptions& options);

}  // namespace stride::benchmark
