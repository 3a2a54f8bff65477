// Single steps of a search in a match tree (match_layout.h), for host and device code alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/keys/key_bits.h"
#include "gpu/match/match_layout.h"

namespace stride {

struct MatchLevelRef {
  const MatchBlock* blocks;  // null: a list level
  const uint32_t* starts;
  const uint16_t* slots;
  const std::byte* entries;
  uint32_t entry_bytes;
  uint32_t stride;
  uint32_t depth;
  uint32_t blocks_of_node;
};

// Trivially copyable, and good on the side (host or device) where the image lies. Only the first
// `levels` entries of `level` are set.
struct MatchTreeRef {
  uint32_t levels;
  MatchLevelRef level[max_match_levels];

  MatchTreeRef() = default;
  // Precondition: the image is of build_matches(), with levels. head: a copy in host memory of the
  // header and the levels.
  MatchTreeRef(const std::byte* head, const std::byte* image) {
    const auto& header = *reinterpret_cast<const MatchHeader*>(head);
    levels = header.levels;
    const auto* shapes = reinterpret_cast<const MatchLevel*>(head + sizeof(MatchHeader));
    for (uint32_t i = 0; i < levels; ++i) {
      const MatchLevel& shape = shapes[i];
      bool list = shape.kind == MatchKind::list;
      level[i] = {list ? nullptr : reinterpret_cast<const MatchBlock*>(image + shape.blocks_offset),
                  list ? reinterpret_cast<const uint32_t*>(image + shape.starts_offset) : nullptr,
                  list ? reinterpret_cast<const uint16_t*>(image + shape.slots_offset) : nullptr,
                  image + shape.entries_offset,
                  header.entry_bytes,
                  shape.stride,
                  shape.depth,
                  static_cast<uint32_t>(blocks_of(shape.stride))};
    }
  }
};

// An entry of 3 bytes as one of 4.
STRIDE_HD inline uint32_t widen_entry(uint32_t narrow) {
  uint32_t number = narrow & end_of_narrow_entries;
  return (narrow << 8 & match_child) | (number == end_of_narrow_entries ? no_match : number);
}
// And back: the number is smaller than end_of_narrow_entries, or no_match.
STRIDE_HD inline uint32_t narrow_entry(uint32_t entry) {
  return (entry >> 8 & (end_of_narrow_entries + 1)) | (entry & end_of_narrow_entries);
}

STRIDE_HD inline uint32_t count_bits_of(uint64_t x) {
#if defined(__CUDA_ARCH__)
  return static_cast<uint32_t>(__popcll(x));
#else
  return static_cast<uint32_t>(__builtin_popcountll(x));
#endif
}

// The index of the entry that a slot of a bitmap node belongs to. block: the one that the slot is
// in.
STRIDE_HD inline uint32_t bitmap_entry_of(const MatchBlock& block, uint32_t slot) {
  uint32_t at = slot % slots_of_block;
  // Without a branch, which would go wrong for one in three.
  uint32_t past = at >> 6;  // 1: in the last of the three words
  uint64_t low = block.bits[0] | uint64_t{block.bits[1]} << 32;
  low &= ~uint64_t{0} >> (63 - (at & 63)) | (0 - uint64_t{past});
  uint32_t high = block.bits[2] & ~uint32_t{0} >> (31 - (at & 31)) & (0 - past);
  return block.before + count_bits_of(low) + count_bits(high);
}

}  // namespace stride
