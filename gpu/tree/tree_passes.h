// The data-parallel passes of which a tree is built: what one task of each pass does. The same
// functions run on host threads and on a device; tree_build.h puts them in order.
//
// A pass over keys is cut into tasks of `keys_per_task` keys of the level's nodes, laid end to end
// (`offsets`). So a level costs as much as there are keys in its nodes, one node may be spread over
// many tasks, and many nodes may share one task.
#pragma once

#include <cstdint>

#include "gpu/keys/key_bits.h"
#include "gpu/tree/tree_layout.h"

namespace stride {

// The ranks of a node.
struct NodeSpan {
  uint32_t first;
  uint32_t last;
};

// The nodes of the level that is being built, and one pass's share of their keys.
template <class Keys>
struct LevelKeys {
  Keys keys;
  const NodeSpan* spans;
  const uint32_t* depths;
  const uint64_t* offsets;  // nodes + 1: where each node's keys begin, all nodes laid end to end
  uint32_t nodes;
  uint32_t stride;
  uint64_t keys_per_task;

  STRIDE_HD uint32_t slot(uint32_t node, uint32_t rank) const {
    return keys.bits(rank, depths[node], stride);
  }
};

STRIDE_HD inline uint32_t node_that_holds(const uint64_t* offsets, uint32_t nodes, uint64_t key) {
  uint32_t low = 0, high = nodes - 1;
  while (low < high) {
    uint32_t middle = high - (high - low) / 2;
    if (offsets[middle] <= key) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// One task: calls op(level, node, begin, end) for each node's part [begin, end) of its ranks, and
// adds up what it returns.
template <class Keys, class Op>
struct KeyTask {
  LevelKeys<Keys> level;
  Op op;

  STRIDE_HD uint64_t operator()(uint64_t task) const {
    uint64_t key = task * level.keys_per_task;
    uint64_t total = level.offsets[level.nodes];
    uint64_t end = total - key < level.keys_per_task ? total : key + level.keys_per_task;
    uint32_t node = node_that_holds(level.offsets, level.nodes, key);
    uint64_t sum = 0;
    for (; key < end; ++node) {
      uint64_t begin = level.offsets[node], stop = level.offsets[node + 1];
      stop = stop < end ? stop : end;
      uint32_t first = level.spans[node].first;
      sum += op(level, node, first + static_cast<uint32_t>(key - begin),
                first + static_cast<uint32_t>(stop - begin));
      key = stop;
    }
    return sum;
  }
};

// Counts the entries that begin in the part.
struct CountEntries {
  template <class Keys>
  STRIDE_HD uint64_t operator()(const LevelKeys<Keys>& level, uint32_t node, uint32_t begin,
                                uint32_t end) const {
    bool at_start = begin == level.spans[node].first;
    uint64_t entries = at_start;
    uint32_t before = level.slot(node, at_start ? begin : begin - 1);
    for (uint32_t rank = begin; rank < end; ++rank) {
      uint32_t slot = level.slot(node, rank);
      entries += slot != before;
      before = slot;
    }
    return entries;
  }
};

// The bits that the first and the last key share, and so all keys.
template <class Keys>
struct SharedByAll {
  Keys keys;
  uint32_t size;
  STRIDE_HD uint64_t operator()(uint64_t) const { return keys.shared(0, size - 1); }
};

struct AddNumbers {
  STRIDE_HD uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};

struct CountWordBits {
  STRIDE_HD uint32_t operator()(const RankedWord& word) const { return count_bits(word.bits); }
};

// `before` of each word, from the scan of the bits; a node's closing start comes in between where
// the words are those of a level's nodes.
struct RankWord {
  RankedWord* words;
  const uint32_t* counts;
  uint64_t words_per_node;  // 0: child references

  STRIDE_HD void operator()(uint64_t i) const {
    uint64_t closing = words_per_node ? i / words_per_node : 0;
    words[i].before = counts[i] + static_cast<uint32_t>(closing);
  }
};

// The starts of a built level.
struct BuiltStarts {
  const uint32_t* starts;
  const RankedWord* words;  // null: the kind has none
  uint32_t count;
  uint32_t nodes;
  uint32_t stride;
  uint32_t starts_of_node;  // 0: as the first word of each node says
  uint64_t words_of_node;

  STRIDE_HD uint32_t first_of(uint32_t node) const {
    if (node == nodes) return count;
    return starts_of_node ? node * starts_of_node : words[node * words_of_node].before;
  }
  STRIDE_HD uint32_t node_of(uint32_t start) const {
    if (starts_of_node) return start / starts_of_node;
    uint32_t low = 0, high = nodes - 1;
    while (low < high) {
      uint32_t middle = high - (high - low) / 2;
      if (first_of(middle) <= start) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

// Sets the child references' bits of 32 starts: entries of more than leaf_capacity keys that are
// not all equal as bit strings.
template <class Keys>
struct MarkChildren {
  Keys keys;
  BuiltStarts level;
  RankedWord* children;
  uint32_t leaf_capacity;

  STRIDE_HD void operator()(uint64_t word) const {
    uint32_t begin = static_cast<uint32_t>(word * 32);
    uint32_t end = level.count - begin < 32 ? level.count : begin + 32;
    uint32_t node = level.node_of(begin);
    uint32_t closing = level.first_of(node + 1) - 1;
    uint32_t bits = 0;
    for (uint32_t start = begin; start < end; ++start) {
      if (start == closing) {
        if (++node < level.nodes) closing = level.first_of(node + 1) - 1;
        continue;
      }
      uint32_t first = level.starts[start], last = level.starts[start + 1];
      if (last - first <= leaf_capacity) continue;
      if (!Keys::always_differ_in_bits && keys.shared(first, last - 1) == same_bits) continue;
      bits |= uint32_t{1} << (start - begin);
    }
    children[word] = {bits, 0};
  }
};

// The keys of a level that are in nodes too large for a leaf.
struct Oversized {
  uint64_t nodes = 0;
  uint64_t keys = 0;
};

struct MeasureOversized {
  const uint32_t* starts;
  const RankedWord* children;

  STRIDE_HD Oversized operator()(uint64_t word) const {
    Oversized sum;
    for (uint32_t bits = children[word].bits; bits; bits &= bits - 1) {
      uint64_t start = word * 32 + count_bits((bits & (0 - bits)) - 1);
      uint64_t size = starts[start + 1] - starts[start];
      sum.nodes += 1;
      sum.keys += size;
    }
    return sum;
  }
};

struct AddOversized {
  STRIDE_HD Oversized operator()(const Oversized& a, const Oversized& b) const {
    return {a.nodes + b.nodes, a.keys + b.keys};
  }
};

// Writes the nodes of the next level that 32 starts have.
template <class Keys>
struct EmitNodes {
  Keys keys;
  BuiltStarts level;
  const RankedWord* children;
  const uint32_t* parent_depths;
  NodeSpan* spans;
  uint32_t* depths;
  uint64_t* sizes;
  bool path_compression;

  STRIDE_HD void operator()(uint64_t word) const {
    uint32_t child = children[word].before;
    for (uint32_t bits = children[word].bits; bits; bits &= bits - 1, ++child) {
      uint32_t start = static_cast<uint32_t>(word * 32) + count_bits((bits & (0 - bits)) - 1);
      uint32_t first = level.starts[start], last = level.starts[start + 1];
      spans[child] = {first, last};
      sizes[child] = last - first;
      depths[child] = path_compression ? keys.shared(first, last - 1)
                                       : parent_depths[level.node_of(start)] + level.stride;
    }
  }
};

}  // namespace stride
