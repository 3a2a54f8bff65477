// The tree alone: how fast it is built and searched, what it costs in memory, and how near that is
// to what the machine allows.
//
// For every kind and number of keys, the keys, queries and prefixes are made before a clock starts.
// Then, for every configuration of the tree: build (from keys in random order), build_sorted, find,
// lower_bound and prefix_interval, each one call with all of it, and find_batch_N for the latency
// of smaller calls. Beside it, for the same keys and queries on the host: std::lower_bound over the
// sorted column, and std::unordered_map. Untimed: the answers of every search, and every index, are
// compared with what the standard library finds in the sorted column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/tree_keys.h"
#include "benchmark/harness/placed_memory.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/timed_phases.h"
#include "gpu/backend.h"

namespace stride::benchmark {

struct TreeConfiguration {
  std::string name;  // "auto", "16,8,8", "flavors:8,8,8,8"
  TreeOptions options;
};

struct TreeOperations {
  bool build = true, build_sorted = true, find = true, lower_bound = true, prefix = true;
};

struct TreeWorkloadOptions {
  std::vector<KeyKind> kinds;
  std::vector<uint64_t> sizes = {0};  // numbers of keys, each as TreeKeys::make() takes it
  std::vector<TreeConfiguration> configurations;
  uint64_t queries = 10'000'000;
  double hit_rate = 1;
  bool sorted_queries = false;
  Where where = Where::backend;  // where keys, queries and results lie
  TreeOperations operations;
  bool latency = false;  // also find with 1, 10, 100, ... up to 10,000,000 queries a call
  uint64_t seed = 1;
  TimingOptions timing;
  unsigned threads = 1;              // of the standard library's searches, and of the checks
  uint64_t max_hashed = 20'000'000;  // std::unordered_map is left out where there are more keys
};

// Appends a row for each phase. Numbers beside the rates: keys, key_bytes, bytes_per_key (of keys
// and tree), image_bytes_per_key, limit_per_second and limit_percent (of random reads, of the bus
// where queries come through it, or for a build of reading each key once). The first failure or
// wrong answer ends it.
Status run_tree(const TreeWorkloadOptions& options, Backend* backend, const Progress& progress,
                std::vector<ResultRow>* rows);

}  // namespace stride::benchmark
