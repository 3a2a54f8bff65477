// Memory for the results of bulk reads: grows without initialising, and is kept between calls.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace stride {

template <class T>
class ResultBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Makes room for n elements of undefined content; what was there before is lost.
  void reset(uint64_t n) {
    if (n > capacity_) {
      uint64_t grown = n + n / 8;
      data_.reset();
      capacity_ = 0;
      data_ = {static_cast<T*>(::operator new(grown * sizeof(T))), Free{}};
      capacity_ = grown;
    }
    size_ = n;
  }
  // Has room for n elements in the caller's memory from now on, and memory of its own again once
  // they do not suffice.
  void borrow(T* memory, uint64_t n) {
    data_ = {memory, Free{.owned = false}};
    capacity_ = n;
    size_ = 0;
  }
  // Keeps the first n elements. Precondition: n <= size().
  void shrink(uint64_t n) { size_ = n; }
  // Whether reset(n) leaves borrowed memory in use.
  bool keeps_memory(uint64_t n) const { return n <= capacity_ || data_.get_deleter().owned; }
  uint64_t size() const { return size_; }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](uint64_t i) { return data_.get()[i]; }
  const T& operator[](uint64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    bool owned = true;
    void operator()(T* p) const {
      if (owned) ::operator delete(p);
    }
  };
  std::unique_ptr<T, Free> data_;
  uint64_t size_ = 0, capacity_ = 0;
};

}  // namespace stride
