// Large arrays that are written in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace stride {

// Memory for large arrays that are written in any order: on huge pages where they are worth it.
// Throws std::bad_alloc.
void* allocate_bulk(uint64_t bytes);
void free_bulk(void* memory);

// A vector whose resize() leaves new elements uninitialised, so that the threads which fill it are
// the first to touch its pages.
template <class T>
struct BulkAllocator {
  using value_type = T;
  BulkAllocator() = default;
  template <class U>
  BulkAllocator(const BulkAllocator<U>&) {}  // NOLINT: implicit on purpose
  T* allocate(size_t n) { return static_cast<T*>(allocate_bulk(n * sizeof(T))); }
  void deallocate(T* p, size_t) { free_bulk(p); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Arguments>
  void construct(U* p, Arguments&&... arguments) {
    ::new (static_cast<void*>(p)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const BulkAllocator&) const { return true; }
};
template <class T>
using BulkVector = std::vector<T, BulkAllocator<T>>;

}  // namespace stride
