// std::unordered_map from key to rank, as a plain peer of exact finds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "benchmark/harness/parallel.h"
#include "storage/column.h"

namespace stride::benchmark {

class HashIndex {
 public:
  // The keys must outlive it. Those of 4 or 8 bytes are hashed as integers.
  explicit HashIndex(const KeyColumn& keys);

  // For each query its row among the keys, or Location::absent; on all threads.
  void find_ranks(const KeyColumn& queries, Parallel* parallel, std::span<uint32_t> out) const;

 private:
  uint32_t number_width_;  // 4 or 8; 0: the keys are no numbers
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::unordered_map<std::string_view, uint32_t> texts_;
};

}  // namespace stride::benchmark
