// What LongestPrefix::build_matches() makes of prefixes: a flat, position-independent image, the
// same bytes from every backend. It stays in memory: it is made again of the prefixes where it is
// needed.
//
// Prefixes cut the addresses into intervals in each of which one prefix is the longest match. An
// interval begins at a *boundary* and has an *answer*: the rank of that prefix, or none. So a match
// is a search for the last boundary that is not behind the address.
//
// Addresses of up to 128 bits: a radix tree over the boundaries.
//
//   +--------+-------------+-----------------+------------------------------------------+----
//   | header | level 0..L  | root:           | level 1:                                 | ...
//   | 64 B   | 64 B each   | blocks, entries | blocks, entries or starts, slots, entries |
//   +--------+-------------+-----------------+------------------------------------------+----
//
// All integers are little-endian; every array begins at a multiple of 64 bytes, and the gaps are
// zero. A level's nodes look at the same `stride` bits of the address, which begin at bit `depth`:
// their *slot*. A node's *entries* are runs of slots with one meaning: an answer, or, for a single
// slot with a boundary inside, a child (match_child | the number of a node of the next level). They
// have `entry_bytes` bytes, 3 where all numbers fit: the highest bit tells a child, and all other
// bits set are no_match.
//
//   bitmap (and the root):  blocks of 96 slots. Bit s of a block is set where an entry begins at
//   its
//                           slot s. Node i owns blocks [i * n, (i + 1) * n), n = blocks_of(stride).
//                           The entry of a slot: before + the bits up to and with that slot's.
//   list:                   node i owns entries [starts[i], starts[i + 1]); slots[e] is where entry
//   e
//                           begins. There are 16 more slots, zero, behind the last.
//
// The first entry of a node begins at slot 0. Nodes and entries are numbered in the order of
// addresses.
//
// Example: prefixes 00/2 (rank 0), 0010/4 (rank 1) of 4 bits; strides {2, 2}.
//   Boundaries: 0000 -> 0, 0010 -> 1, 0011 -> 0, 0100 -> none.
//   Root: slot 00 has boundaries inside: entries {child 0, none}, block {before -1, bits 0b0011}.
//   Level 1, node 0: slots 00 -> 0, 10 -> 1, 11 -> 0: entries {0, 1, 0}, bits 0b1101.
//
// Longer addresses, and byte strings: the boundaries as a column of keys with a tree over it
// (tree_layout.h), and their answers. An address that begins with the prefix p is one of [p, the
// next string that does not begin with p).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stride {

inline constexpr uint64_t match_magic = 0x316863746d727453ull;  // "StrmtcH1"
inline constexpr uint32_t max_match_levels = 40;
inline constexpr uint32_t max_tree_address_bits = 128;
inline constexpr uint64_t match_alignment = 64;

inline constexpr uint32_t match_child = 0x80000000;
inline constexpr uint32_t no_match = 0x7FFFFFFF;
// Numbers of entries of 3 bytes are smaller.
inline constexpr uint32_t end_of_narrow_entries = 0x7FFFFF;

struct MatchHeader {
  uint64_t magic;
  uint32_t levels;  // 0: a column of boundaries
  uint32_t address_bits;
  uint64_t image_bytes;
  uint32_t prefixes;
  uint32_t boundaries;
  uint32_t entry_bytes;  // 3 or 4
  uint32_t reserved32;   // zero
  uint64_t reserved[3];  // zero
};
static_assert(sizeof(MatchHeader) == 64 && alignof(MatchHeader) == 8);

enum class MatchKind : uint32_t { bitmap, list };

struct MatchLevel {
  uint32_t stride;
  MatchKind kind;
  uint32_t depth;
  uint32_t nodes;
  uint32_t entries;
  uint32_t reserved32;  // zero
  // Byte offsets in the image; 0: no such array.
  uint64_t blocks_offset;   // nodes * blocks_of(stride) x MatchBlock; of bitmap levels
  uint64_t starts_offset;   // nodes + 1 x u32; of list levels
  uint64_t slots_offset;    // entries + 16 x u16; of list levels
  uint64_t entries_offset;  // entries x entry_bytes, and 1 byte
  uint64_t reserved;        // zero
};
static_assert(sizeof(MatchLevel) == 64 && alignof(MatchLevel) == 8);

// Behind the header of a column of boundaries.
struct MatchColumn {
  uint32_t width;       // bytes of a boundary; 0: any length
  uint32_t reserved32;  // zero
  uint64_t key_bytes;
  uint64_t tree_bytes;
  // Byte offsets in the image; 0: no such array.
  uint64_t answers_offset;  // boundaries x u32: ranks, or no_match
  uint64_t keys_offset;
  uint64_t bases_offset;   // as PackedOffsets
  uint64_t deltas_offset;  // of 4 bytes
  uint64_t tree_offset;
};
static_assert(sizeof(MatchColumn) == 64 && alignof(MatchColumn) == 8);

inline constexpr uint32_t slots_of_block = 96;
inline constexpr uint32_t slots_past_list = 16;

// 16 bytes, so that one access to memory tells the entry of any of its slots.
struct MatchBlock {
  uint32_t before;  // index of the entry that its first slot is part of where that begins earlier
  uint32_t bits[3];
};
static_assert(sizeof(MatchBlock) == 16 && alignof(MatchBlock) == 4);

inline constexpr uint64_t blocks_of(uint32_t stride) {
  return ((uint64_t{1} << stride) + slots_of_block - 1) / slots_of_block;
}

inline constexpr uint64_t align_match(uint64_t bytes) {
  return (bytes + match_alignment - 1) / match_alignment * match_alignment;
}
// The header of a tree, and the offsets of all arrays of its levels.
MatchHeader place_match_arrays(uint32_t address_bits, uint32_t prefixes, uint32_t boundaries,
                               std::span<MatchLevel> levels);

}  // namespace stride
