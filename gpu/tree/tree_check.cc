// Checks a tree image from outside before anything is searched in it.
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/tree/nodes/node_kinds.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree/tree_search.h"
#include "gpu/tree_index.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

namespace {

Status damaged(const std::string& what) {
  return Status(StatusCode::corruption, "tree image: " + what)
      .with_remedy("rebuild the segment from its key column (salvage)");
}

std::string of_level(uint32_t level) { return " of level " + std::to_string(level); }

bool all_zero(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) {
    if (p[i]) return false;
  }
  return true;
}

// The nodes that a level must have, as the references of the level above say.
struct ExpectedNodes {
  std::vector<RankInterval> ranks;
  std::vector<uint32_t> least_depths;
};

class TreeChecker {
 public:
  TreeChecker(std::span<const std::byte> image, uint64_t keys) : image_(image), keys_(keys) {}

  Status check() {
    STRIDE_TRY(check_header());
    STRIDE_TRY(check_shapes());
    tree_ = TreeRef(image_.data());
    ExpectedNodes nodes;
    nodes.ranks.push_back({0, tree_.keys});
    nodes.least_depths.push_back(tree_.prefix_bits);
    for (uint32_t i = 0; i < tree_.levels; ++i) {
      STRIDE_TRY(check_nodes(i, nodes));
      ExpectedNodes children;
      if (tree_.level[i].children) STRIDE_TRY(check_children(i, nodes, &children));
      nodes = std::move(children);
    }
    return {};
  }

 private:
  Status check_header() {
    if (reinterpret_cast<uintptr_t>(image_.data()) % alignof(TreeHeader) != 0) {
      return Status::invalid("tree image: not aligned to 8 bytes");
    }
    if (image_.size() < sizeof header_) return damaged("too short for its header");
    std::memcpy(&header_, image_.data(), sizeof header_);
    if (header_.magic != tree_magic) return damaged("not a tree image");
    if (header_.version > tree_version) {
      return Status(StatusCode::unsupported_version,
                    "tree image of version " + std::to_string(header_.version))
          .with_remedy("open it with a newer StrideDB");
    }
    if (header_.version != tree_version) return damaged("no such version");
    if (header_.image_bytes != image_.size()) {
      return damaged("is " + std::to_string(image_.size()) + " bytes and should be " +
                     std::to_string(header_.image_bytes));
    }
    if (header_.keys != keys_) {
      return damaged("made for " + std::to_string(header_.keys) + " keys, not " +
                     std::to_string(keys_));
    }
    if (header_.levels < 1 || header_.levels > max_tree_levels) return damaged("level count");
    if (header_.prefix_bits > max_key_bytes * 8) return damaged("prefix_bits");
    if (header_.leaf_capacity < 1 || header_.leaf_capacity > max_leaf_capacity) {
      return damaged("leaf capacity");
    }
    if (!all_zero(header_.reserved, sizeof header_.reserved)) return damaged("reserved bytes");
    return {};
  }

  // Sizes and places of all arrays.
  Status check_shapes() {
    uint64_t bytes = header_.levels * sizeof(TreeLevel);
    if (image_.size() - sizeof header_ < bytes) return damaged("too short for its levels");
    shapes_.resize(header_.levels);
    std::memcpy(shapes_.data(), image_.data() + sizeof header_, bytes);
    for (uint32_t i = 0; i < header_.levels; ++i) {
      const TreeLevel& level = shapes_[i];
      if (level.stride < 1 || level.stride > max_stride) return damaged("stride" + of_level(i));
      if (!is_node_kind(level.kind)) return damaged("node kind" + of_level(i));
      const auto kind = static_cast<NodeKind>(level.kind);
      if (level.nodes < 1 || (i == 0 && (level.nodes != 1 || kind != NodeKind::dense))) {
        return damaged("node count" + of_level(i));
      }
      const uint64_t starts = level.nodes * starts_of_node(kind, level.stride);
      if (starts ? level.starts != starts : level.starts < level.nodes) {
        return damaged("entry count" + of_level(i));
      }
      if (!all_zero(level.reserved, sizeof level.reserved)) return damaged("reserved bytes");
    }
    std::vector<TreeLevel> placed = shapes_;
    if (place_tree_arrays(&placed) != image_.size() ||
        std::memcmp(placed.data(), shapes_.data(), bytes) != 0) {
      return damaged("array offsets");
    }
    return {};
  }

  // Every node begins and ends where its parent's entry does, and its starts ascend in between.
  Status check_nodes(uint32_t i, const ExpectedNodes& expected) {
    const LevelRef& level = tree_.level[i];
    if (expected.ranks.size() != shapes_[i].nodes) return damaged("node count" + of_level(i));
    uint32_t start = 0;
    for (uint32_t node = 0; node < shapes_[i].nodes; ++node) {
      if (i > 0 &&
          (level.depths[node] < expected.least_depths[node] || level.depths[node] > max_depth)) {
        return damaged("node depth" + of_level(i));
      }
      uint64_t entries = 0;
      const bool intact = visit_kind(
          level.kind, [&](auto nodes) { return nodes.check_node(level, node, start, &entries); });
      if (!intact) return damaged("slot words" + of_level(i));
      if (shapes_[i].starts - start < entries + 1) return damaged("entry count" + of_level(i));
      if (!check_starts(level.starts + start, entries, expected.ranks[node])) {
        return damaged("starts" + of_level(i));
      }
      start += static_cast<uint32_t>(entries) + 1;
    }
    return start == shapes_[i].starts ? Status() : damaged("entry count" + of_level(i));
  }

  static bool check_starts(const uint32_t* starts, uint64_t entries, RankInterval ranks) {
    bool ascend = starts[0] == ranks.first && starts[entries] == ranks.last;
    for (uint64_t i = 0; i < entries; ++i) ascend &= starts[i] <= starts[i + 1];
    return ascend;
  }

  // Reads the child references: where they are set, how many they are, and of which entries.
  Status check_children(uint32_t i, const ExpectedNodes& nodes, ExpectedNodes* children) {
    const LevelRef& level = tree_.level[i];
    uint32_t parent = 0, closing = closing_start(i, 0);
    for (uint64_t w = 0; w < child_words_of(shapes_[i]); ++w) {
      if (level.children[w].before != children->ranks.size()) {
        return damaged("child references" + of_level(i));
      }
      for (uint32_t bits = level.children[w].bits; bits; bits &= bits - 1) {
        uint64_t start = w * 32 + count_bits((bits & (0 - bits)) - 1);
        if (start >= shapes_[i].starts) return damaged("child references" + of_level(i));
        while (closing < start) closing = closing_start(i, ++parent);
        if (start == closing) return damaged("child references" + of_level(i));
        RankInterval ranks{level.starts[start], level.starts[start + 1]};
        if (ranks.last - ranks.first <= tree_.leaf_capacity) {
          return damaged("a child of a small entry" + of_level(i));
        }
        children->ranks.push_back(ranks);
        uint32_t depth = i > 0 ? level.depths[parent] : nodes.least_depths[0];
        children->least_depths.push_back(depth + level.stride);
      }
    }
    return {};
  }

  uint32_t closing_start(uint32_t i, uint32_t node) const {
    const LevelRef& level = tree_.level[i];
    const auto starts = static_cast<uint32_t>(starts_of_node(level.kind, level.stride));
    if (starts) return (node + 1) * starts - 1;
    return node + 1 < shapes_[i].nodes
               ? level.words[(node + 1) * words_of_node(level.kind, level.stride)].before - 1
               : shapes_[i].starts - 1;
  }

  // Without path compression depths go on past the longest key, by a stride a level.
  static constexpr uint32_t max_depth = max_key_bytes * 8 + max_tree_levels * max_stride;

  std::span<const std::byte> image_;
  uint64_t keys_;
  TreeHeader header_{};
  std::vector<TreeLevel> shapes_;
  TreeRef tree_;
};

}  // namespace

Status check_tree(std::span<const std::byte> image, uint64_t keys) {
  return TreeChecker(image, keys).check();
}

namespace {

// Whether the keys of each node on the way to a rank, of which that is the first, share the bits
// that come before those the node looks at.
template <class Keys>
struct NodesThatBegin {
  const Keys& keys;
  const uint32_t rank;
  bool hold = true;

  void visit(const LevelRef& level, uint32_t node, uint32_t depth) {
    RankInterval ranks = ranks_of_node(level, node);
    if (ranks.first == rank && keys.shared(ranks.first, ranks.last - 1) < depth) hold = false;
  }
};

}  // namespace

uint64_t first_misled(const IndexView& index, uint64_t begin, uint64_t end) {
  if (!index.tree.image) return end;
  const TreeRef tree(index.tree.image);
  return with_keys(index.keys, [&](const auto& keys) {
    for (uint64_t rank = begin; rank < end; ++rank) {
      NodesThatBegin<std::decay_t<decltype(keys)>> nodes{keys, static_cast<uint32_t>(rank)};
      RankInterval found = descend(tree, bits_of_query(keys[rank]), nodes);
      if (!nodes.hold || rank < found.first || rank >= found.last) return rank;
    }
    return end;
  });
}

uint64_t first_not_ascending(const PackedColumn& column, uint64_t begin, uint64_t end) {
  return with_keys(column, [&](const auto& keys) {
    for (uint64_t rank = std::max<uint64_t>(begin, 1); rank < end; ++rank)
      if (compare_keys(keys[rank - 1], keys[rank]) >= 0) return rank;
    return end;
  });
}

static_assert(tree_head_bytes == sizeof(TreeHeader) + max_tree_levels * sizeof(TreeLevel));

TreeStatistics tree_statistics(const TreeView& tree) {
  TreeStatistics statistics;
  if (tree.image == nullptr) return statistics;
  const auto* header = reinterpret_cast<const TreeHeader*>(tree.image);
  const auto* shapes = reinterpret_cast<const TreeLevel*>(tree.image + sizeof(TreeHeader));
  for (uint32_t i = 0; i < header->levels; ++i) {
    statistics.strides.push_back(shapes[i].stride);
    statistics.nodes.push_back(shapes[i].nodes);
    statistics.kinds.push_back(static_cast<NodeKind>(shapes[i].kind));
  }
  statistics.prefix_bits = header->prefix_bits;
  statistics.leaf_capacity = header->leaf_capacity;
  statistics.keys = header->keys;
  statistics.image_bytes = header->image_bytes;
  return statistics;
}

}  // namespace stride
