// The numbers that are mapped, and what the sums of each target must be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "benchmark/datasets/key_columns.h"
#include "gpu/scatter_add.h"
#include "storage/status.h"

namespace stride::benchmark {

// One S, and what T must be.
struct Weights {
  NumberType type;
  BulkVector<std::byte> numbers;
  std::vector<double> sums, absolute;  // of each target; in doubles
  std::vector<uint64_t> wrapped;       // integers, in 64 bits
  std::vector<uint64_t> counts;

  Numbers view(uint64_t sources) const { return {type, numbers.data(), sources}; }
  uint64_t targets() const { return sums.size(); }
  uint64_t into_bytes() const { return targets() * width_of(type); }
};

// Makes a number for each source: integers from -1000 to 1000, floats from -1 to 1.
// target_of_source: each is below `targets`.
Weights make_weights(NumberType type, std::span<const uint32_t> target_of_source, uint64_t targets,
                     uint64_t seed);

// Checks that T is `calls` times what S comes to. corruption: it is not. who: what has made it.
Status check_sums(const Weights& weights, const void* into, uint64_t calls, const std::string& who);

}  // namespace stride::benchmark
