// A range of zero-filled memory that costs only address space until it is written.
//
//   Result<ReservedMemory> memory = ReservedMemory::reserve(bound);
//   std::memcpy(memory->data(), bytes, n);
//   memory->shrink(n);
//
// Internal to storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/map_limit.h"
#include "storage/status.h"

namespace stride {

// Owns its pages; not thread-safe, but the pages may be written from any thread.
class ReservedMemory {
 public:
  static constexpr uint64_t huge_page_bytes = 2 << 20;

  ReservedMemory() = default;
  ReservedMemory(ReservedMemory&& other) noexcept;
  ReservedMemory& operator=(ReservedMemory&& other) noexcept;
  ~ReservedMemory();

  // Page-aligned; from 4 MiB on aligned to huge pages, and advised to use them. Below that a huge
  // page would hold more memory than it is worth. resource_exhausted.
  static Result<ReservedMemory> reserve(uint64_t bytes);

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  // Gives back what lies beyond the first `bytes`, in whole pages.
  void shrink(uint64_t bytes);

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  std::unique_ptr<CountedMapping> counted_;
};

}  // namespace stride
