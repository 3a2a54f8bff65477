// The tree image: flat, position-independent, the same bytes in a file, in memory and on a device.
//
//   +--------+-------------+---------------------+-------------------------------------------+----
//   | header | level 0..L  | root:               | level 1:                                  | ...
//   | 64 B   | 64 B each   | starts | child refs | depths | words (bitmap) | starts | refs    |
//   +--------+-------------+---------------------+-------------------------------------------+----
//
// All integers are little-endian; every array begins at a multiple of 64 bytes, and the gaps are
// zero. The tree maps a key to an interval of ranks [first, last) of a sorted key column, the only
// ranks where the key can be.
//
// A node looks at `stride` bits of the key, from its *depth* on: its *slot*. The root's depth is
// the header's prefix_bits; deeper nodes have theirs in `depths`. A node's *entries* are intervals
// between neighbouring *starts*, and the last entry is followed by one more start, where the node
// ends:
//
//   dense (and the root):  2^stride entries, entry = slot. Node i owns starts
//                          [i * (2^stride + 1), (i + 1) * (2^stride + 1)).
//   bitmap:                entries of the slots that have keys. A node owns max(1, 2^stride / 32)
//                          words; bit b of word w stands for slot 32 w + b. A word's `before` is
//                          the index of the start that belongs to its first bit set.
//
// An entry of more than leaf_capacity ranks may have a child, a node of the next level: the child
// references of a level are words over its starts (bit b of word w: start 32 w + b), and `before`
// is the number of children that lie before the word. Children are numbered in order.
//
// Example: keys 0x10 0x12 0x13 0x80 of one byte, strides {1, 2}, leaf_capacity 2.
//   prefix_bits 0; root: starts 0 3 4; entry 0 (keys 0x10..0x13) has a child:
//   refs {bits 0b001, before 0}.
//   Level 1, node 0: its keys share 6 bits, so depth 6; slots 0, 2 and 3.
//     dense:   starts 0 1 1 2 3        (slot 1 is empty)
//     bitmap:  words {bits 0b1101, before 0}; starts 0 1 2 3
//   Searching 0x12 = 00010010: root slot 0 -> [0, 3), child 0; bits 6..7 are 10, slot 2 -> [1, 2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stride {

inline constexpr uint64_t tree_magic = 0x3165657254727453ull;  // "StrTree1"
inline constexpr uint32_t tree_version = 1;
inline constexpr uint32_t max_tree_levels = 32;
inline constexpr uint32_t max_stride = 28;
inline constexpr uint32_t max_leaf_capacity = 65535;
inline constexpr uint64_t tree_alignment = 64;

struct TreeHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t levels;
  uint64_t image_bytes;
  uint32_t keys;
  uint32_t prefix_bits;  // shared by all keys
  uint32_t leaf_capacity;
  uint32_t reserved[7];  // zero
};
static_assert(sizeof(TreeHeader) == 64 && alignof(TreeHeader) == 8);

struct TreeLevel {
  uint32_t stride;
  uint32_t kind;  // NodeKind, of those in nodes/node_kinds.h
  uint32_t nodes;
  uint32_t starts;
  // Byte offsets in the image; 0: no such array.
  uint64_t depths_offset;    // nodes x u32; not of the root
  uint64_t words_offset;     // words_of() x RankedWord; of kinds that have words
  uint64_t starts_offset;    // starts x u32
  uint64_t children_offset;  // child_words_of() x RankedWord; of all levels but the last
  uint64_t reserved[2];      // zero
};
static_assert(sizeof(TreeLevel) == 64 && alignof(TreeLevel) == 8);

struct RankedWord {
  uint32_t bits;
  uint32_t before;
};
static_assert(sizeof(RankedWord) == 8 && alignof(RankedWord) == 4);

inline constexpr uint64_t child_words_of(const TreeLevel& level) {
  return (uint64_t{level.starts} + 31) / 32;
}

inline constexpr uint64_t align_tree(uint64_t bytes) {
  return (bytes + tree_alignment - 1) / tree_alignment * tree_alignment;
}

// Sets the offsets of all arrays from strides, kinds and counts, and returns the image's bytes.
// There is one such layout only, which is how a reader checks the offsets.
uint64_t place_tree_arrays(std::vector<TreeLevel>* levels);

}  // namespace stride
