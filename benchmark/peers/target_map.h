// The plain way from keys to targets: a hash map of the standard library.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "storage/column.h"

namespace stride::benchmark {

// std::unordered_map from key to target. Keys of 4 or 8 bytes are hashed as integers.
class TargetMap {
 public:
  // The keys must outlive it.
  TargetMap(const KeyColumn& keys, std::span<const uint32_t> targets);
  // Precondition: the keys are there.
  void find(const KeyColumn& keys, std::span<uint32_t> targets) const;

 private:
  bool is_number_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::unordered_map<std::string_view, uint32_t> texts_;
};

}  // namespace stride::benchmark
