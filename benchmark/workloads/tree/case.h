// One configuration of the tree over one set of keys.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmark/harness/placed_memory.h"
#include "benchmark/workloads/tree/workload.h"

namespace stride::benchmark {

// One kind and number of keys, and what is searched for.
struct TreeData {
  std::string name;  // "u64 1m"
  TreeKeys keys;
  OwnedColumn queries, prefixes;
};

class TreeCase {
 public:
  // All of them must outlive it.
  TreeCase(const TreeWorkloadOptions& options, const TreeData& data, Backend* backend,
           Parallel* parallel)
      : options_(options), data_(data), placement_{backend, options.where}, parallel_(parallel) {}

  // Once. Adds the rows to the phases. corruption: a wrong answer; else what the backend returns.
  Status run(TimedPhases* phases, const TreeConfiguration& configuration);

 private:
  using Index = std::shared_ptr<ResidentIndex>;

  Status place_queries();
  Status build(TimedPhases* phases, const TreeOptions& tree);
  Status build(const KeyColumn& keys, KeyOrder order, const TreeOptions& tree, double* seconds);
  Status search(TimedPhases* phases);
  Status find_batches(TimedPhases* phases);
  Status check_index();
  Status check_found(uint64_t queries);
  Status describe(std::vector<ResultRow>* rows);
  double limit(const std::string& phase, const BackendLimits& limits) const;

  const TreeWorkloadOptions& options_;
  const TreeData& data_;
  Placement placement_;
  Parallel* parallel_;
  PlacedColumn keys_, queries_, prefixes_;
  PlacedResults<uint32_t> ranks_;
  PlacedResults<RankInterval> intervals_;
  Index index_;  // after keys_, which it may use
};

}  // namespace stride::benchmark
