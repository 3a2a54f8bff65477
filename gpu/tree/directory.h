// What a device searches in place of a tree: a directory where that has one level, entries where it
// has several (cuda_search.cuh).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace stride {

// A directory entry for about as many keys: then the directory of 100M keys, 8 MiB, stays in the
// second-level cache, and the guess inside a leaf is seldom off by more than a sector.
inline constexpr uint64_t keys_per_directory_entry = 24;
inline constexpr uint32_t min_directory_bits = 10;
inline constexpr uint32_t max_directory_bits = 28;
// A small directory costs nothing, and narrow leaves save accesses.
inline constexpr uint32_t free_directory_bits = 19;

// Whether a device keeps the entries of a tree of several levels, in 16 bytes each, for its
// searches: not of one that is much larger than what it indexes, as Flavors' are.
inline bool device_keeps_entries(double starts, uint64_t keys) {
  return starts <= 2.0 * static_cast<double>(keys) + (1 << 16);
}

inline uint32_t directory_bits_for(uint64_t keys) {
  auto wanted = static_cast<uint32_t>(std::bit_width(keys / keys_per_directory_entry | 1)) - 1;
  auto narrowest = static_cast<uint32_t>(std::bit_width(keys | 1));
  return std::clamp(wanted, std::min(free_directory_bits, std::max(narrowest, min_directory_bits)),
                    max_directory_bits);
}

}  // namespace stride
