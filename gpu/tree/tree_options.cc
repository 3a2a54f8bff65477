#include "gpu/tree_options.h"

#include <string>

#include "gpu/tree/nodes/node_kinds.h"
#include "gpu/tree/tree_layout.h"

namespace stride {

std::string to_string(NodeKind kind) {
  if (kind == NodeKind::automatic) return "automatic";
  return visit_kind(kind, [](auto nodes) { return std::string(nodes.name); });
}

Status TreeOptions::check() const {
  if (strides.size() > max_tree_levels) {
    return Status::invalid("a tree of " + std::to_string(strides.size()) + " levels: at most " +
                           std::to_string(max_tree_levels));
  }
  for (size_t level = 0; level < strides.size(); ++level) {
    if (strides[level] >= 1 && strides[level] <= max_stride) continue;
    return Status::invalid("stride " + std::to_string(strides[level]) + " of level " +
                           std::to_string(level) + ": a stride is 1 to " +
                           std::to_string(max_stride) + " bits");
  }
  if (leaf_capacity > max_leaf_capacity) {
    return Status::invalid("leaf_capacity " + std::to_string(leaf_capacity) + ": at most " +
                           std::to_string(max_leaf_capacity));
  }
  return {};
}

}  // namespace stride
