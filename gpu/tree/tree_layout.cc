#include "gpu/tree/tree_layout.h"

#include "gpu/tree/nodes/node_kinds.h"

namespace stride {

uint64_t place_tree_arrays(std::vector<TreeLevel>* levels) {
  uint64_t end = sizeof(TreeHeader) + levels->size() * sizeof(TreeLevel);
  auto append = [&](uint64_t bytes) {
    uint64_t offset = align_tree(end);
    end = offset + bytes;
    return offset;
  };
  for (size_t i = 0; i < levels->size(); ++i) {
    TreeLevel& level = (*levels)[i];
    const uint64_t words = words_of(level);
    level.depths_offset = i > 0 ? append(level.nodes * sizeof(uint32_t)) : 0;
    level.words_offset = words ? append(words * sizeof(RankedWord)) : 0;
    level.starts_offset = append(level.starts * sizeof(uint32_t));
    level.children_offset =
        i + 1 < levels->size() ? append(child_words_of(level) * sizeof(RankedWord)) : 0;
  }
  return align_tree(end);
}

}  // namespace stride
