// How a tree is laid out.
//
//   TreeOptions automatic;                                   // strides from the data
//   TreeOptions mine{.strides = {20, 8, 8}, .leaf_capacity = 8};
//   TreeOptions classic = TreeOptions::flavors({16, 8, 8});  // Wolant and Kaczmarski, GTC 2018
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// How a level lays its nodes out (gpu/tree/nodes/). The numbers are those of the tree image.
enum class NodeKind : uint8_t { automatic, dense, bitmap };
inline constexpr uint32_t node_kinds = 3;         // automatic included
STRIDE_API std::string to_string(NodeKind kind);  // "bitmap"

struct TreeOptions {
  // Bits that each level consumes, the root first: 1 to 28 each. Empty: chosen from the keys. At
  // most 32 levels; bits past the last level are left to the comparisons in the leaf. A level of
  // more than 2^32 - 1 entries is refused when the tree is built.
  std::vector<uint32_t> strides;
  // A node is split further only where it holds more keys than this. 0: chosen. At most 65535.
  uint32_t leaf_capacity = 0;
  NodeKind node_kind = NodeKind::automatic;  // of the levels below the root
  bool path_compression = true;              // skip bits that all keys of a node share
  // An automatic tree takes at most so many bytes. 0: 4 for each key, or an eighth of the keys' own
  // bytes, whichever is more. A level that does not fit gets fewer bits, or is left out.
  uint64_t max_image_bytes = 0;
  // Each level that is here has this kind (the root's does not count); the others have node_kind.
  std::vector<NodeKind> kinds = {};

  // Flavors' own tree: dense nodes, leaf capacity 1, no skipping.
  static TreeOptions flavors(std::vector<uint32_t> strides) {
    return {std::move(strides), 1, NodeKind::dense, false};
  }
  NodeKind kind_of(size_t level) const { return level < kinds.size() ? kinds[level] : node_kind; }
  // Says which stride is out of range, and the limits.
  STRIDE_API Status check() const;
};

}  // namespace stride
