// Copies between pageable host memory and the device at the speed of the bus: through pinned
// staging memory, which host threads fill or empty while other pieces are on their way.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/backend.h"
#include "gpu/cuda_device.h"

namespace stride {

// Column memory on a device is aligned to a sector.
inline constexpr uint64_t sector_alignment = 32;

// Pinned memory for calls to borrow; it is slow to make.
class PinnedPool {
 public:
  class Piece {
   public:
    Piece() = default;
    Piece(PinnedPool* pool, PinnedMemory memory) : pool_(pool), memory_(std::move(memory)) {}
    Piece(Piece&&) = default;
    Piece& operator=(Piece&&) = default;
    ~Piece() {
      if (memory_.data()) pool_->give_back(std::move(memory_));
    }
    std::byte* data() const { return memory_.data(); }

   private:
    PinnedPool* pool_ = nullptr;
    PinnedMemory memory_;
  };

  PinnedPool() { idle_.reserve(most_idle); }
  // Of staging_bytes.
  Piece take();

 private:
  static constexpr size_t most_idle = 48;

  void give_back(PinnedMemory memory) {
    std::lock_guard lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(memory));
  }

  std::mutex mutex_;
  std::vector<PinnedMemory> idle_;
};

class CudaTransfer {
 public:
  CudaTransfer(CudaDevice& device, Backend& host) : device_(device), host_(host) {}

  CudaDevice& device() const { return device_; }
  PinnedPool& pinned() { return pinned_; }

  // Between pageable host memory and the device; done when they return. The work on the stream
  // before them is done first.
  void to_device(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
    Bytes part{static_cast<const std::byte*>(from), bytes};
    to_device(to, {&part, 1}, stream);
  }
  // Parts, one after the other.
  void to_device(void* to, std::span<const Bytes> parts, cudaStream_t stream);
  void to_host(void* to, const void* from, uint64_t bytes, cudaStream_t stream);

  // More threads only queue for the driver.
  unsigned most_workers() const { return std::min(host_.threads(), 8u); }
  // Calls work(), which may throw, on up to so many of the host's threads at once.
  void each_worker(uint64_t workers, const std::function<void()>& work);

 private:
  CudaDevice& device_;
  Backend& host_;
  PinnedPool pinned_;
};

}  // namespace stride
