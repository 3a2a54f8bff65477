// Copies between pageable host memory and the device at the speed of the bus: through pinned
// staging memory, which host threads fill or empty while other pieces are on their way.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/device/cuda_device.h"
#include "gpu/device/piece_room.h"
#include "gpu/execution_context.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Column memory on a device is aligned to a sector.
inline constexpr uint64_t sector_alignment = 32;

// Memory for calls to borrow; it is slow to make. Thread-safe.
template <class Memory>
class MemoryPool {
 public:
  class Piece {
   public:
    Piece() = default;
    Piece(MemoryPool* pool, Memory memory) : pool_(pool), memory_(std::move(memory)) {}
    Piece(Piece&& other) noexcept { *this = std::move(other); }
    Piece& operator=(Piece&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(memory_, other.memory_);
      return *this;
    }
    ~Piece() {
      if (pool_) pool_->give_back(std::move(memory_));
    }
    std::byte* data() { return memory_.data(); }
    Memory& memory() { return memory_; }
    // Nobody will borrow this piece again.
    void forget() { memory_ = Memory(); }

   private:
    MemoryPool* pool_ = nullptr;
    Memory memory_;
  };

  // Keeps up to max_idle pieces that nobody has borrowed. While so many are lent, take() waits for
  // one to be given back before it makes another, but not for longer than its patience: who lends
  // may be waiting for the same thread.
  MemoryPool(size_t max_idle, std::function<Memory()> make,
             std::chrono::milliseconds patience = std::chrono::milliseconds(0))
      : max_idle_(max_idle), patience_(patience), make_(std::move(make)) {
    idle_.reserve(max_idle);
  }
  Piece take() {
    Piece piece(this, lend());
    if (!piece.data()) piece.memory() = make_();
    return piece;
  }

 private:
  // One that is idle, or none.
  Memory lend() {
    std::unique_lock lock(mutex_);
    if (lent_ >= max_idle_)
      given_back_.wait_for(lock, patience_, [&] { return lent_ < max_idle_; });
    ++lent_;
    if (idle_.empty()) return {};
    Memory memory = std::move(idle_.back());
    idle_.pop_back();
    return memory;
  }
  void give_back(Memory memory) {
    {
      std::lock_guard lock(mutex_);
      --lent_;
      if (memory.data() && idle_.size() < max_idle_) idle_.push_back(std::move(memory));
    }
    given_back_.notify_one();
  }

  const size_t max_idle_;
  const std::chrono::milliseconds patience_;
  const std::function<Memory()> make_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable given_back_;
  std::vector<Memory> idle_;
  size_t lent_ = 0;
};
using PinnedPool = MemoryPool<PinnedMemory>;
using DevicePool = MemoryPool<CudaArray<std::byte>>;
using PieceRoomPool = MemoryPool<PieceRoom>;

// Where a column lies, and so how it gets to the device.
enum class MemorySide {
  device,
  peer,    // the memory of another device
  pinned,  // host memory that the device reads and writes itself
  pageable
};
// bytes: of the column; 1: all is where it begins.
MemorySide memory_side(const CudaDevice& device, const void* p, uint64_t bytes = 1);

class CudaTransfer {
 public:
  CudaTransfer(CudaDevice& device, ExecutionContext& host);

  CudaDevice& device() const { return device_; }
  ExecutionContext& host() const { return host_; }
  // Lends pieces of staging_bytes.
  PinnedPool& pinned() { return pinned_; }
  // Lends pieces of the device's memory. Whole words may be read where a column ends in one. Give a
  // piece back when nothing that uses it is under way on any stream.
  DevicePool& on_device() { return on_device_; }
  // For a batch of so many pieces, at most large_room.max_pieces.
  PieceRoomPool& piece_rooms(uint64_t pieces) {
    return pieces <= small_room.max_pieces ? small_rooms_ : large_rooms_;
  }

  // Between host memory and the device; done when they return. The work on the stream before them
  // is done first.
  void to_device(void* to, const void* from, uint64_t bytes, cudaStream_t stream);
  // Parts, one after the other.
  void to_device(void* to, std::span<const Bytes> parts, cudaStream_t stream);
  void to_host(void* to, const void* from, uint64_t bytes, cudaStream_t stream);

  // Copies between any two of host memory, the device's and that of other devices.
  Status copy(void* to, const void* from, uint64_t bytes);

  // Makes memory of its own, which any stream may use.
  CudaArray<std::byte> make_device_memory(uint64_t bytes);

  // More threads that copy only queue for the driver.
  unsigned max_workers() const { return std::min(host_.threads(), 8u); }
  // Calls work(), which may throw, on up to so many of the host's threads at once: once for each
  // worker that was asked for, at most, and at least once.
  void each_worker(uint64_t workers, const std::function<void()>& work);

 private:
  PieceRoom make_room(const PieceRoomSize& size);

  CudaDevice& device_;
  ExecutionContext& host_;
  PinnedPool pinned_;
  DevicePool on_device_;
  PieceRoomPool small_rooms_, large_rooms_;
};

// What all that a CUDA backend can do shares. Lives as long as the backend.
struct CudaContext {
  CudaDevice& device;
  CudaTransfer& transfer;

  // Whether a column lies in the device's memory.
  bool owns(const void* p) const { return p != nullptr && device.owns(p); }
  bool owns(const KeyColumn& keys) const { return owns(where(keys)); }
  // Whether the host cannot read it: it lies in the memory of this device or another one.
  bool is_of_device(const void* p) const {
    if (p == nullptr) return false;
    const MemorySide side = memory_side(device, p);
    return side == MemorySide::device || side == MemorySide::peer;
  }
  bool is_of_device(const KeyColumn& keys) const { return is_of_device(where(keys)); }

 private:
  static const void* where(const KeyColumn& keys) {
    return keys.is_fixed() ? static_cast<const void*>(keys.data) : keys.offsets;
  }
};

// Shares items [0, items) out among `workers`, each with two lanes: while what one of them was
// given is under way, the other is filled. make(lane) emplaces an optional Lane; run(lane, item)
// and lane.finish(), which waits for the item that it was given last, return a Status. The first
// that is not ok ends the work, as does what they throw.
template <class Lane, class Make, class Run>
Status run_lanes(CudaTransfer& transfer, uint64_t items, uint64_t workers, const Make& make,
                 const Run& run) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  Status failure;
  transfer.each_worker(std::min(items, workers), [&] {
    auto check = [&](Status status) {
      if (status.ok()) return;
      next = items;
      std::lock_guard lock(mutex);
      (void)(failure = std::move(status));
    };
    OnDevice on(transfer.device());
    std::optional<Lane> lanes[2];
    try {
      for (uint64_t turn = 0;; ++turn) {
        uint64_t item = next++;
        if (item >= items) break;
        std::optional<Lane>& lane = lanes[turn % 2];
        if (!lane) make(lane);
        check(run(*lane, item));
      }
      for (auto& lane : lanes)
        if (lane) check(lane->finish());
    } catch (...) {
      next = items;
      throw;
    }
  });
  return failure;
}

// Device memory for a part of a chunk: borrowed, where that will do.
class DeviceRoom {
 public:
  explicit DeviceRoom(CudaTransfer& transfer) : transfer_(transfer) {}
  // What was there before is lost.
  std::byte* room(uint64_t bytes) {
    if (bytes <= staging_bytes) {
      if (!piece_.data()) piece_ = transfer_.on_device().take();
      return piece_.data();
    }
    if (own_.size() < bytes) own_ = transfer_.make_device_memory(bytes);
    return own_.data();
  }

 private:
  CudaTransfer& transfer_;
  DevicePool::Piece piece_;
  CudaArray<std::byte> own_;
};

}  // namespace stride
