// A key column in ascending order, searched by the standard library: what answers are checked
// against, and the plain way to search that stands beside the tree.
//
//   SortedColumn sorted(keys, &parallel);
//   uint64_t rank = sorted.lower_bound(query);
//   sorted.find_ranks(queries, &parallel, ranks);        // a batch, on all threads
#pragma once

#include <cstdint>
#include <span>

#include "benchmark/datasets/key_columns.h"
#include "benchmark/harness/parallel.h"
#include "gpu/backend.h"
#include "storage/column.h"

namespace stride::benchmark {

// Immutable. Searches may run on several threads. At most max_index_keys keys.
class SortedColumn {
 public:
  // Keys of 4 or 8 bytes are searched as integers.
  SortedColumn(const KeyColumn& keys, Parallel* parallel);

  KeyColumn view() const { return column_.view(); }
  uint64_t size() const { return column_.rows; }

  // How many keys are smaller.
  uint64_t lower_bound(Bytes key) const;
  bool contains(Bytes key) const;
  // The ranks of the keys that start with it.
  RankInterval prefix_interval(Bytes prefix) const;

  // As the calls of Backend: std::lower_bound for each query, on all threads.
  void lower_bound(const KeyColumn& queries, Parallel* parallel, std::span<uint32_t> out) const;
  void find_ranks(const KeyColumn& queries, Parallel* parallel, std::span<uint32_t> out) const;

 private:
  template <class Run>
  void with_search(const KeyColumn& queries, const Run& run) const;

  OwnedColumn column_;
  // The keys once more, where they have 4 or 8 bytes.
  BulkVector<uint32_t> numbers4_;
  BulkVector<uint64_t> numbers8_;
};

}  // namespace stride::benchmark
