// Memory for columns that stay until a commit: large pieces on huge pages, filled from the front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace stride::cli {

// One mapping; goes when the last column in it does.
class Slab {
 public:
  explicit Slab(size_t bytes);  // throws std::bad_alloc
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab();
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

// Not thread-safe: one for each thread.
class Arena {
 public:
  // Memory of at most `bytes`, of which take() then keeps the front. The slab keeps it alive.
  std::byte* reserve(size_t bytes);
  void take(size_t bytes);
  const std::shared_ptr<Slab>& slab() const { return slab_; }

 private:
  std::shared_ptr<Slab> slab_;
  size_t used_ = 0;
};

}  // namespace stride::cli
