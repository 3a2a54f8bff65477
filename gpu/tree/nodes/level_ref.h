// A level of a tree as its searches see it, and what a kind of node has to say of itself. Each kind
// is a struct in a file of its own beside this one; node_kinds.h lists them.
//
//   struct SomeNodes {
//     static constexpr NodeKind kind;
//     static constexpr const char* name;      // for people
//     // Whether a node has words, which a search reads before a start: one access more.
//     static constexpr bool has_words;
//     static uint64_t words_of_node(uint32_t stride);   // 0 where it has none
//     // 0: one for each slot that has keys, and one more.
//     static uint64_t starts_of_node(uint32_t stride);
//
//     // Construction: sets the starts, and the words, which are zero before. passes has
//     // over_keys(op), which calls op(level, node, begin, end) for parts of each node's ranks
//     // (tree_passes.h), rank_words(), which sets `before` of all words, and, where thread_a_key,
//     // unmark_starts(number) and take_next_starts() (tree_build.h).
//     static void fill(Passes& passes, uint32_t stride, RankedWord* words, uint32_t* starts);
//     // Whether the words of a node that begins at `start` lead nowhere else; says how many
//     // entries it has, fewer than its starts by one.
//     static bool check_node(const LevelRef& level, uint32_t node, uint32_t start,
//                            uint64_t* entries);
//     // On host and device. Level: LevelRef, or DeviceLevel of device_index.cuh.
//     static EntryRef find(const Level& level, uint32_t node, uint32_t slot);
//     static RankInterval ranks_of_node(const LevelRef& level, uint32_t node);
//     // Asks for what find() reads, or, where that reads nothing, for the start that it names.
//     static void prefetch_entry(const LevelRef& level, uint32_t node, uint32_t slot);
//   };
#pragma once

#include <cstdint>

#include "gpu/keys/key_bits.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree_index.h"
#include "gpu/tree_options.h"

namespace stride {

struct LevelRef {
  const uint32_t* depths;
  const RankedWord* words;  // null: the kind has none
  const uint32_t* starts;
  const RankedWord* children;  // null: the last level
  uint32_t stride;
  NodeKind kind;

  STRIDE_HD RankedWord word(uint64_t i) const { return words[i]; }
};

// The start with which the entry of `slot` begins; where a node has no such entry, the start of the
// next one, and `present` is false.
struct EntryRef {
  uint32_t start;
  bool present;
};

}  // namespace stride
