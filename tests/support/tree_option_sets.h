// Tree options of every kind.
#pragma once

#include <string>
#include <vector>

#include "gpu/tree_options.h"
#include "tests/support/key_sets.h"

namespace stride::test {

inline TreeOptions random_options(Random& random) {
  TreeOptions options;
  switch (random() % 4) {
    case 0:
      break;
    case 1: {
      std::vector<uint32_t> strides(1 + random() % 6);
      for (uint32_t& stride : strides) stride = 1 + static_cast<uint32_t>(random() % 9);
      if (random() % 4 == 0) return TreeOptions::flavors(strides);
      options.strides = strides;
      break;
    }
    case 2:
      options.strides.assign(32, 1 + static_cast<uint32_t>(random() % 4));
      break;
    default:
      options.strides = {1 + static_cast<uint32_t>(random() % 16), 8, 8};
      break;
  }
  options.leaf_capacity = random() % 3 ? 0 : 1 + static_cast<uint32_t>(random() % 64);
  options.node_kind = static_cast<NodeKind>(random() % node_kinds);
  options.path_compression = random() % 4 != 0;
  return options;
}

inline std::string describe(const KeySet& set, size_t n, const TreeOptions& options) {
  std::string text = std::string(set.name) + " n " + std::to_string(n) + " strides";
  for (uint32_t stride : options.strides) text += " " + std::to_string(stride);
  return text + " leaf " + std::to_string(options.leaf_capacity) + " kind " +
         std::to_string(static_cast<int>(options.node_kind)) +
         (options.path_compression ? " compressed" : "");
}

}  // namespace stride::test
