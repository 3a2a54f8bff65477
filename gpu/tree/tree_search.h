// Single searches in a tree, for host and device code alike: what one thread does for one query.
//
//   TreeRef tree(view.image);                            // after check_tree()
//   RankInterval ranks = descend(tree, NumberQuery{q});  // the only ranks that can hold q
//
// A descent looks at the bits of the query that the levels name and at no others. So the interval
// is right for a key that is in the column, and says nothing about one that is not: a find compares
// whole keys there, and a lower bound checks the neighbours of its answer (search_one.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gpu/keys/key_bits.h"
#include "gpu/tree/nodes/node_kinds.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree_index.h"
#include "storage/column.h"

namespace stride {

// A tree image, ready to be searched: trivially copyable, and good on the side (host or device)
// where the image lies. Only the first `levels` entries of `level` are set.
struct TreeRef {
  uint32_t keys;
  uint32_t prefix_bits;
  uint32_t leaf_capacity;
  uint32_t levels;
  LevelRef level[max_tree_levels];

  TreeRef() = default;
  // Precondition: check_tree() passed, and the image is in host memory.
  explicit TreeRef(const std::byte* image) : TreeRef(image, image) {}
  // head: a copy in host memory of the header and the levels of an image that lies elsewhere.
  TreeRef(const std::byte* head, const std::byte* image) {
    const auto* header = reinterpret_cast<const TreeHeader*>(head);
    const auto* shapes = reinterpret_cast<const TreeLevel*>(head + sizeof(TreeHeader));
    auto words = [&](uint64_t offset) {
      return offset ? reinterpret_cast<const RankedWord*>(image + offset) : nullptr;
    };
    auto numbers = [&](uint64_t offset) {
      return offset ? reinterpret_cast<const uint32_t*>(image + offset) : nullptr;
    };
    keys = header->keys;
    prefix_bits = header->prefix_bits;
    leaf_capacity = header->leaf_capacity;
    levels = header->levels;
    for (uint32_t i = 0; i < levels; ++i) {
      level[i] = {numbers(shapes[i].depths_offset),
                  words(shapes[i].words_offset),
                  numbers(shapes[i].starts_offset),
                  words(shapes[i].children_offset),
                  shapes[i].stride,
                  static_cast<NodeKind>(shapes[i].kind)};
    }
  }
};
static_assert(std::is_trivially_copyable_v<TreeRef>);

// A query whose bits a descent reads.
struct NumberQuery {  // 8 bytes, as a big-endian number
  uint64_t number;
  STRIDE_HD uint32_t bits(uint32_t depth, uint32_t count) const {
    return bits_of(number, depth, count);
  }
};
struct ByteQuery {
  const std::byte* data;
  uint64_t bytes;
  uint64_t head;  // the first 8 bytes

  ByteQuery() = default;
  STRIDE_HD ByteQuery(const std::byte* query, uint64_t query_bytes)
      : data(query), bytes(query_bytes), head(slice8(query, query_bytes, 0)) {}
  STRIDE_HD uint32_t bits(uint32_t depth, uint32_t count) const {
    return depth + count <= 64 ? bits_of(head, depth, count) : bits_at(data, bytes, depth, count);
  }
};

// The bits of a prefix, and then ones.
struct PrefixEndQuery {
  Bytes prefix;
  STRIDE_HD uint32_t bits(uint32_t depth, uint32_t count) const {
    uint32_t bits = bits_at(prefix.data(), prefix.size(), depth, count);
    uint64_t end = prefix.size() * 8;
    if (depth + count <= end) return bits;
    uint32_t own = depth < end ? static_cast<uint32_t>(end - depth) : 0;
    return bits | static_cast<uint32_t>((uint64_t{1} << (count - own)) - 1);
  }
};

// The bits of a key, in whichever form a search has it.
STRIDE_HD inline NumberQuery bits_of_query(uint64_t number) { return {number}; }
STRIDE_HD inline ByteQuery bits_of_query(Bytes key) { return {key.data(), key.size()}; }
STRIDE_HD inline PrefixEndQuery bits_of_query(PrefixEnd end) { return {end.prefix}; }

STRIDE_HD inline RankInterval ranks_of(const LevelRef& level, EntryRef entry) {
  uint32_t first = level.starts[entry.start];
  return {first, entry.present ? level.starts[entry.start + 1] : first};
}

// The child of an entry, or no_node.
inline constexpr uint32_t no_node = 0xFFFFFFFF;

STRIDE_HD inline uint32_t child_of(const LevelRef& level, uint32_t start) {
  RankedWord word = level.children[start >> 5];
  uint32_t bit = uint32_t{1} << (start & 31);
  return word.bits & bit ? word.before + count_bits(word.bits & (bit - 1)) : no_node;
}

// Where a descent is: a node of a level, then its child, and so on; `ranks` where it ended.
struct DescentStep {
  RankInterval ranks;
  uint32_t child;  // no_node: ranks is the answer
};

STRIDE_HD inline DescentStep leave_node(const TreeRef& tree, const LevelRef& level,
                                        EntryRef entry) {
  RankInterval ranks = ranks_of(level, entry);
  bool large = level.children && ranks.last - ranks.first > tree.leaf_capacity;
  return {ranks, large ? child_of(level, entry.start) : no_node};
}

// Ignores what a walker is told.
struct NoPath {
  STRIDE_HD void visit(const LevelRef&, uint32_t, uint32_t) {}
};

// Calls path.visit(level, node, depth) for each node on the way.
template <class Query, class Path>
STRIDE_HD inline RankInterval descend(const TreeRef& tree, const Query& query, Path& path) {
  uint32_t node = 0, depth = tree.prefix_bits;
  for (uint32_t i = 0;; ++i) {
    const LevelRef& level = tree.level[i];
    if (i > 0) depth = level.depths[node];
    path.visit(level, node, depth);
    uint32_t slot = query.bits(depth, level.stride);
    DescentStep step = leave_node(tree, level, find_entry(level, node, slot));
    if (step.child == no_node) return step.ranks;
    node = step.child;
  }
}

template <class Query>
STRIDE_HD inline RankInterval descend(const TreeRef& tree, const Query& query) {
  NoPath path;
  return descend(tree, query, path);
}

}  // namespace stride
