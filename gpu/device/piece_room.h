// Memory for a batch that goes in pieces (piece_flags.h): pinned, but for a few words of the
// device's.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

#include "gpu/device/cuda_device.h"
#include "gpu/device/piece_flags.h"

namespace stride {

// How large a room is: pinned memory takes long to make, and most batches are small.
struct PieceRoomSize {
  uint32_t max_slots;
  uint32_t max_pieces;  // of a batch
};
inline constexpr PieceRoomSize small_room{64, 128}, large_room{512, 1 << 16};
static_assert(small_room.max_pieces % PieceFlags::done_rows == 0 &&
              large_room.max_pieces % PieceFlags::done_rows == 0);

class PieceRoom {
 public:
  // How much of the device's memory a room needs.
  static constexpr uint64_t device_bytes(const PieceRoomSize& size) {
    return (size.max_pieces + 1) * sizeof(uint32_t);
  }

  PieceRoom() = default;
  // words: device_bytes(size) of the device's memory, zeros.
  PieceRoom(const PieceRoomSize& size, CudaArray<std::byte> words)
      : size_(size), pinned_(2 * ring_bytes() + flag_bytes()), words_(std::move(words)) {
    std::memset(ready(), 0, flag_bytes());
  }

  // Null: there is none.
  std::byte* data() const { return pinned_.data(); }
  // The rings, of max_slots times slot_bytes each.
  std::byte* in() const { return pinned_.data(); }
  std::byte* out() const { return pinned_.data() + ring_bytes(); }

  // Returns the flags of the next batch.
  PieceFlags begin(uint32_t pieces, uint32_t slots) {
    auto* words = reinterpret_cast<uint32_t*>(words_.data());
    PieceFlags flags{ready(), done(), words,         words + size_.max_pieces, tickets_, ++round_,
                     pieces,  slots,  done_columns()};
    tickets_ += flags.blocks();
    return flags;
  }
  // Whether the next round's number was one before, and flags of then might be up.
  bool is_worn() const { return round_ == UINT32_MAX; }
  void raise_ready(uint64_t piece) {
    std::atomic_ref(ready()[piece]).store(round_, std::memory_order_release);
  }
  bool is_done(uint64_t piece) const {
    const uint64_t at = PieceFlags::done_flag(piece, done_columns());
    return std::atomic_ref(done()[at]).load(std::memory_order_acquire) == round_;
  }

 private:
  uint64_t ring_bytes() const { return uint64_t{size_.max_slots} * slot_bytes; }
  uint64_t flag_bytes() const {
    return (size_.max_pieces + PieceFlags::done_rows * done_columns()) * sizeof(uint32_t);
  }
  uint32_t* ready() const { return reinterpret_cast<uint32_t*>(pinned_.data() + 2 * ring_bytes()); }
  uint32_t* done() const { return ready() + size_.max_pieces; }
  uint32_t done_columns() const { return PieceFlags::done_columns_for(size_.max_pieces); }

  PieceRoomSize size_{};
  PinnedMemory pinned_;
  CudaArray<std::byte> words_;
  uint32_t round_ = 0, tickets_ = 0;
};

}  // namespace stride
