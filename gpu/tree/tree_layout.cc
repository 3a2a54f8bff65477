#include "gpu/tree/tree_layout.h"

#include "gpu/tree_options.h"

namespace stride {

uint64_t place_tree_arrays(std::vector<TreeLevel>* levels) {
  uint64_t end = sizeof(TreeHeader) + levels->size() * sizeof(TreeLevel);
  auto place = [&](uint64_t bytes) {
    uint64_t offset = align_tree(end);
    end = offset + bytes;
    return offset;
  };
  for (size_t i = 0; i < levels->size(); ++i) {
    TreeLevel& level = (*levels)[i];
    bool bitmap = level.kind == static_cast<uint32_t>(NodeKind::bitmap);
    level.depths_offset = i > 0 ? place(level.nodes * sizeof(uint32_t)) : 0;
    level.words_offset = bitmap ? place(words_of(level) * sizeof(RankedWord)) : 0;
    level.starts_offset = place(level.starts * sizeof(uint32_t));
    level.children_offset =
        i + 1 < levels->size() ? place(child_words_of(level) * sizeof(RankedWord)) : 0;
  }
  return align_tree(end);
}

}  // namespace stride
