// Memory of a device that the chunks of batches take and give back: several threads that ask the
// driver for memory at once wait for each other as long as a chunk is searched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// Thread-safe.
class RoomCache {
 public:
  // device: outlives it. most_bytes: what is kept while nobody uses it.
  RoomCache(Backend& device, uint64_t most_bytes) : device_(device), most_bytes_(most_bytes) {}

  // At least so many bytes. resource_exhausted: the device has not so much, even when nothing is
  // kept.
  Result<std::unique_ptr<BackendMemory>> take(uint64_t bytes) {
    if (std::unique_ptr<BackendMemory> kept = take_kept(bytes))
      return Result<std::unique_ptr<BackendMemory>>(std::move(kept));
    const uint64_t rounded = (bytes + unit - 1) / unit * unit;
    auto made = device_.allocate(rounded);
    if (made.status().code() != StatusCode::resource_exhausted || !drop()) return made;
    return device_.allocate(rounded);
  }
  // What does not fit in is freed.
  void give_back(std::unique_ptr<BackendMemory> memory) noexcept {
    const std::lock_guard lock(mutex_);
    if (kept_bytes_ + memory->size() > most_bytes_ || kept_.size() == kept_.capacity()) return;
    kept_bytes_ += memory->size();
    kept_.push_back(std::move(memory));
  }
  // Frees all that nobody uses. False: there is none.
  bool drop() noexcept {
    const std::lock_guard lock(mutex_);
    const bool has_some = !kept_.empty();
    kept_.clear();
    kept_bytes_ = 0;
    return has_some;
  }

 private:
  static constexpr uint64_t unit = 1 << 20;
  static constexpr size_t most_kept = 256;

  // The smallest that is large enough, and not much larger. Null: there is none.
  std::unique_ptr<BackendMemory> take_kept(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    kept_.reserve(most_kept);
    auto best = kept_.end();
    for (auto one = kept_.begin(); one != kept_.end(); ++one)
      if ((*one)->size() >= bytes && (*one)->size() / 4 <= std::max(bytes, unit) &&
          (best == kept_.end() || (*one)->size() < (*best)->size()))
        best = one;
    if (best == kept_.end()) return nullptr;
    std::swap(*best, kept_.back());
    std::unique_ptr<BackendMemory> memory = std::move(kept_.back());
    kept_.pop_back();
    kept_bytes_ -= memory->size();
    return memory;
  }

  Backend& device_;
  const uint64_t most_bytes_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<BackendMemory>> kept_;
  uint64_t kept_bytes_ = 0;
};

// Memory of a device for what comes from elsewhere, or goes there.
class ChunkRoom {
 public:
  ChunkRoom() = default;
  ChunkRoom(ChunkRoom&& other) noexcept : cache_(other.cache_), memory_(std::move(other.memory_)) {}
  ~ChunkRoom() { release(); }

  // What was there before is lost. Always of the same device.
  Status make(RoomCache& cache, uint64_t bytes) {
    if (memory_ && memory_->size() >= bytes) return {};
    release();
    auto made = cache.take(bytes);
    if (!made.ok()) return made.status();
    cache_ = &cache;
    memory_ = std::move(*made);
    return {};
  }
  std::byte* data() const { return memory_->data(); }

 private:
  void release() noexcept {
    if (memory_) cache_->give_back(std::move(memory_));
  }

  RoomCache* cache_ = nullptr;
  std::unique_ptr<BackendMemory> memory_;
};

// A room with the cache that it comes from.
struct RoomOfDevice {
  RoomCache* cache;
  ChunkRoom* room;

  Status make(uint64_t bytes) const { return room->make(*cache, bytes); }
};

}  // namespace stride
