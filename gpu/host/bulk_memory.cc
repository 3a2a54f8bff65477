#include <sys/mman.h>

#include <cstdlib>

#include "gpu/bulk_vector.h"

namespace stride {

void* allocate_bulk(uint64_t bytes) {
  constexpr uint64_t huge_page = uint64_t{2} << 20;
  uint64_t alignment = bytes >= huge_page ? huge_page : 64;
  // aligned_alloc wants whole multiples, and none of zero bytes.
  uint64_t whole = (bytes / alignment + (bytes % alignment != 0 || bytes == 0)) * alignment;
  void* memory = whole < bytes ? nullptr : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  // Scattered writes to small pages would miss the address cache at every row. Refused is fine.
  if (alignment == huge_page) (void)::madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}

void free_bulk(void* memory) { std::free(memory); }

}  // namespace stride
