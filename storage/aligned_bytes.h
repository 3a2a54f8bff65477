// Bytes that start at a multiple of 64, so that columns in them are aligned as in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stride {

class AlignedBytes {
 public:
  uint64_t size() const { return size_; }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  void resize(uint64_t bytes);  // zeros where it grows

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  uint64_t size_ = 0;
};

}  // namespace stride
