#include "storage/reserved_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <utility>

namespace stride {

namespace {

constexpr uint64_t page_bytes = 4096;
constexpr uint64_t smallest_with_huge_pages = 4 << 20;

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

ReservedMemory::ReservedMemory(ReservedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      counted_(std::move(other.counted_)) {}

ReservedMemory& ReservedMemory::operator=(ReservedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(counted_, other.counted_);
  return *this;
}

ReservedMemory::~ReservedMemory() {
  if (data_) ::munmap(data_, size_);
}

Result<ReservedMemory> ReservedMemory::reserve(uint64_t bytes) {
  bool huge = bytes >= smallest_with_huge_pages;
  uint64_t alignment = huge ? huge_page_bytes : page_bytes;
  uint64_t size = round_up(bytes, alignment);
  uint64_t mapped = huge ? size + huge_page_bytes : size;
  void* p = MAP_FAILED;
  if (mapped >= bytes && mapped > 0) {
    p = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
               -1, 0);
  }
  if (p == MAP_FAILED) {
    return no_room_for_mapping("cannot reserve " + std::to_string(bytes) + " bytes of memory");
  }
  auto* start = static_cast<std::byte*>(p);
  uint64_t skip =
      round_up(reinterpret_cast<uintptr_t>(p), alignment) - reinterpret_cast<uintptr_t>(p);
  if (skip > 0) ::munmap(start, skip);
  if (mapped - skip > size) ::munmap(start + skip + size, mapped - skip - size);
  // Only advice: where it is refused, small pages do.
  if (huge) (void)::madvise(start + skip, size, MADV_HUGEPAGE);
  ReservedMemory memory;
  memory.data_ = start + skip;
  memory.size_ = size;
  memory.counted_ = std::make_unique<CountedMapping>();
  return memory;
}

void ReservedMemory::shrink(uint64_t bytes) {
  uint64_t keep = round_up(bytes, page_bytes);
  if (keep >= size_) return;
  if (keep == 0) {
    *this = ReservedMemory();
    return;
  }
  ::munmap(data_ + keep, size_ - keep);
  size_ = keep;
}

}  // namespace stride
