#include "adapters/cli/input/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace stride::cli {
namespace {

constexpr size_t slab_bytes = 64 << 20;
constexpr size_t alignment = 64;

}  // namespace

Slab::Slab(size_t bytes) : bytes_(bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(p);
  madvise(p, bytes, MADV_HUGEPAGE);
}

Slab::~Slab() { munmap(data_, bytes_); }

std::byte* Arena::reserve(size_t bytes) {
  if (!slab_ || slab_->size() - used_ < bytes) {
    slab_ = std::make_shared<Slab>(std::max(bytes, slab_bytes));
    used_ = 0;
  }
  return slab_->data() + used_;
}

void Arena::take(size_t bytes) {
  used_ += (bytes + alignment - 1) / alignment * alignment;
  used_ = std::min(used_, slab_->size());
}

}  // namespace stride::cli
