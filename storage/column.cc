#include "storage/column.h"

#include <bit>

namespace stride {

uint64_t Bitmap::count() const {
  uint64_t n = 0;
  for (uint64_t word : words_) n += static_cast<uint64_t>(std::popcount(word));
  return n;
}

}  // namespace stride
