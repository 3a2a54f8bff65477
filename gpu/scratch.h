// Large uninitialised arrays for the time of one call.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace stride {

// n uninitialised T, on huge pages where the system has them: scattered writes to small pages
// would miss the address cache at every row. Throws std::bad_alloc.
template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(uint64_t n) : size_(n) {
    uint64_t bytes = n * sizeof(T);
    uint64_t alignment = bytes >= huge_page ? huge_page : 64;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (bytes == 0) return;
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
    if (!data_) throw std::bad_alloc();
    if (alignment == huge_page) (void)::madvise(data_.get(), bytes, MADV_HUGEPAGE);
  }
  T* data() { return data_.get(); }
  uint64_t size() const { return size_; }

 private:
  static constexpr uint64_t huge_page = uint64_t{2} << 20;
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  uint64_t size_ = 0;
};

}  // namespace stride
