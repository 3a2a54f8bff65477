// From references to found values to the columns of a lookup's result.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmark/harness/engine_under_test.h"
#include "benchmark/harness/parallel.h"

namespace stride::benchmark {

// values[i].data() is null where query i was not found. Copies the values on all cores.
void gather_values(const ResultBuffer<Bytes>& values, Parallel* parallel, LookupResult* result);

// The same on the calling thread, for a batch that is too small for more.
void gather_few_values(const ResultBuffer<Bytes>& values, LookupResult* result);

// A reference to nothing, which is another thing than a found, empty value.
inline constexpr Bytes not_found_value{};
inline constexpr std::byte empty_value_place{};
inline Bytes found_value(const void* data, size_t bytes) {
  return {bytes ? static_cast<const std::byte*>(data) : &empty_value_place, bytes};
}

// Keeps copies of values whose own memory does not last until the end of a batch.
class ValueArena {
 public:
  // Valid until clear().
  Bytes copy(const void* data, size_t bytes) {
    if (bytes > free_ || at_ == nullptr) grow(bytes);
    std::memcpy(at_, data, bytes);
    Bytes kept = found_value(at_, bytes);
    at_ += bytes;
    free_ -= bytes;
    return kept;
  }
  void clear() {
    used_ = 0;
    free_ = 0;
  }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    size_t bytes;
  };
  void grow(size_t bytes) {
    // Kept blocks are used again; one that is too small for a huge value is passed over.
    while (used_ < blocks_.size() && blocks_[used_].bytes < bytes) ++used_;
    if (used_ == blocks_.size()) {
      size_t block_bytes = std::max(bytes, size_t{1} << 20);
      blocks_.push_back({std::unique_ptr<std::byte[]>(new std::byte[block_bytes]), block_bytes});
    }
    at_ = blocks_[used_].data.get();
    free_ = blocks_[used_++].bytes;
  }

  std::vector<Block> blocks_;
  size_t used_ = 0, free_ = 0;
  std::byte* at_ = nullptr;
};

}  // namespace stride::benchmark
