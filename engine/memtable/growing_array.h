// An array of pointers that one thread extends while any number read it. Nothing in it moves.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <new>

namespace stride {

template <class T>
class GrowingArray {
 public:
  GrowingArray() = default;
  ~GrowingArray() {
    for (auto& part : parts_) delete[] part.load(std::memory_order_relaxed);
  }
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;

  // Null where there is none. Any thread.
  T* operator[](size_t i) const noexcept {
    const Position at(i);
    if (at.part >= max_parts) return nullptr;
    const std::atomic<T*>* part = parts_[at.part].load(std::memory_order_acquire);
    return part ? part[at.offset].load(std::memory_order_acquire) : nullptr;
  }

  // The writer: makes room for element i. Throws std::bad_alloc.
  void reserve(size_t i) {
    const Position at(i);
    if (at.part >= max_parts) throw std::bad_alloc();
    if (parts_[at.part].load(std::memory_order_relaxed)) return;
    parts_[at.part].store(new std::atomic<T*>[first_part << at.part](), std::memory_order_release);
  }
  // Precondition: reserve(i).
  void set(size_t i, T* element) noexcept {
    const Position at(i);
    parts_[at.part].load(std::memory_order_relaxed)[at.offset].store(element,
                                                                     std::memory_order_release);
  }

 private:
  // Each part is twice as large as the one before.
  static constexpr size_t first_part = 8, max_parts = 30;
  struct Position {
    explicit Position(size_t i) {
      part = static_cast<size_t>(std::bit_width(i / first_part + 1)) - 1;
      offset = i + first_part - (first_part << part);
    }
    size_t part, offset;
  };
  std::atomic<std::atomic<T*>*> parts_[max_parts] = {};
};

}  // namespace stride
