#include "storage/aligned_bytes.h"

#include <algorithm>
#include <cstring>

namespace stride {

void AlignedBytes::resize(uint64_t bytes) {
  if (bytes < size_) std::memset(data() + bytes, 0, size_ - bytes);
  uint64_t lines = (bytes + 63) / 64;
  if (lines > lines_.capacity()) lines_.reserve(std::max(lines, 2 * lines_.capacity()));
  lines_.resize(lines);
  size_ = bytes;
}

}  // namespace stride
