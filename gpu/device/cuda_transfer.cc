#include "gpu/device/cuda_transfer.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "storage/status.h"
#include "storage/stream_store.h"

namespace stride {

namespace {

// Carries the first exception of several threads to the one that waits for them.
class FirstException {
 public:
  template <class Work>
  void watch(const Work& work) {
    try {
      work();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!exception_) exception_ = std::current_exception();
    }
  }
  void rethrow() {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
};

// A stretch of the parts on one side, and where it lies on the other.
struct Stretch {
  const std::byte* from;
  std::byte* to;
  uint64_t bytes;
};

std::vector<Stretch> in_stretches(void* to, std::span<const Bytes> parts) {
  std::vector<Stretch> stretches;
  auto* next = static_cast<std::byte*>(to);
  for (Bytes part : parts) {
    for (uint64_t at = 0; at < part.size(); at += staging_bytes) {
      uint64_t bytes = std::min<uint64_t>(staging_bytes, part.size() - at);
      stretches.push_back({part.data() + at, next, bytes});
      next += bytes;
    }
  }
  return stretches;
}

// A stream with a piece of staging memory, through which one stretch at a time goes.
class StagedCopy {
 public:
  StagedCopy(CudaTransfer& transfer, uint64_t total_bytes)
      : piece_(transfer.pinned().take()), stream_(transfer.device()), total_bytes_(total_bytes) {}

  void send(const Stretch& stretch) {
    (void)finish();
    std::memcpy(piece_.data(), stretch.from, stretch.bytes);
    cuda_check(
        cudaMemcpyAsync(stretch.to, piece_.data(), stretch.bytes, cudaMemcpyHostToDevice, stream_),
        "copy to the device");
    busy_ = true;
  }
  void fetch(const Stretch& stretch) {
    (void)finish();
    cuda_check(cudaMemcpyAsync(piece_.data(), stretch.from, stretch.bytes, cudaMemcpyDeviceToHost,
                               stream_),
               "copy from the device");
    busy_ = true;
    arriving_ = stretch;
  }
  // Waits for the stretch that is under way, if any.
  Status finish() {
    if (!busy_) return {};
    busy_ = false;
    stream_.wait();
    copy_result(arriving_.to, piece_.data(), arriving_.bytes, total_bytes_);
    arriving_ = {};
    return {};
  }

 private:
  PinnedPool::Piece piece_;
  CudaStream stream_;  // goes first, and waits for what uses the piece
  bool busy_ = false;
  Stretch arriving_{};
  uint64_t total_bytes_;
};

template <class Start>
void copy_stretches(CudaTransfer& transfer, const std::vector<Stretch>& stretches,
                    const Start& start) {
  uint64_t total = 0;
  for (const Stretch& stretch : stretches) total += stretch.bytes;
  (void)run_lanes<StagedCopy>(
      transfer, stretches.size(), transfer.max_workers(),
      [&](auto& copy) { copy.emplace(transfer, total); },
      [&](StagedCopy& copy, uint64_t i) {
        start(copy, stretches[i]);
        return Status();
      });
}

// Memory that the device reads and writes itself needs no staging.
void copy_directly(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy");
  cuda_check(cudaStreamSynchronize(stream), "copy");
}

}  // namespace

MemorySide memory_side(const CudaDevice& device, const void* p, uint64_t bytes) {
  if (device.owns(p)) return MemorySide::device;
  auto type_of = [](const void* byte) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, byte) == cudaSuccess) return attributes.type;
    (void)cudaGetLastError();
    return cudaMemoryTypeUnregistered;
  };
  const cudaMemoryType type = type_of(p);
  if (type == cudaMemoryTypeDevice) return MemorySide::peer;
  // A program may have registered a part of an array.
  const bool is_pinned =
      type == cudaMemoryTypeHost &&
      (bytes <= 1 || type_of(static_cast<const std::byte*>(p) + bytes - 1) == type);
  return is_pinned ? MemorySide::pinned : MemorySide::pageable;
}

// The threads of the host are all at work for a few batches, and 32 MB of pinned memory take longer
// to make than many batches last.
constexpr std::chrono::milliseconds patience_for_rooms{100};

CudaTransfer::CudaTransfer(CudaDevice& device, ExecutionContext& host)
    : device_(device),
      host_(host),
      pinned_(48, [] { return PinnedMemory(staging_bytes); }),
      on_device_(48, [this] { return make_device_memory(staging_bytes); }),
      small_rooms_(
          16, [this] { return make_room(small_room); }, patience_for_rooms),
      large_rooms_(
          4, [this] { return make_room(large_room); }, patience_for_rooms) {}

PieceRoom CudaTransfer::make_room(const PieceRoomSize& size) {
  OnDevice on(device_);
  return PieceRoom(size, make_device_memory(PieceRoom::device_bytes(size)));
}

Status CudaTransfer::copy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return {};
  const MemorySide to_side = memory_side(device_, to), from_side = memory_side(device_, from);
  auto is_of_device = [](MemorySide side) {
    return side == MemorySide::device || side == MemorySide::peer;
  };
  const bool to_device_memory = is_of_device(to_side);
  if (!to_device_memory && !is_of_device(from_side)) {
    std::memcpy(to, from, bytes);
    return {};
  }
  return cuda_guarded([&] {
    CudaStream stream(device_);
    if ((to_device_memory && is_of_device(from_side)) || to_side == MemorySide::peer ||
        from_side == MemorySide::peer) {
      copy_directly(to, from, bytes, stream);
    } else if (to_device_memory) {
      to_device(to, from, bytes, stream);
    } else {
      to_host(to, from, bytes, stream);
    }
    return Status();
  });
}

// Cleared, for the word that holds the last byte of a column is read as a whole.
CudaArray<std::byte> CudaTransfer::make_device_memory(uint64_t bytes) {
  CudaStream stream(device_);
  CudaArray<std::byte> memory(device_, stream, bytes);
  cuda_check(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream), "clear memory");
  stream.wait();
  memory.outlive_stream();
  return memory;
}

void CudaTransfer::each_worker(uint64_t workers, const std::function<void()>& work) {
  FirstException failure;
  host_.parallel_for(std::min<uint64_t>(workers, host_.threads()), 1,
                     [&](uint64_t begin, uint64_t end) {
                       for (; begin < end; ++begin) failure.watch(work);
                     });
  failure.rethrow();
}

void CudaTransfer::to_device(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  if (memory_side(device_, from) != MemorySide::pageable)
    return copy_directly(to, from, bytes, stream);
  const Bytes part{static_cast<const std::byte*>(from), bytes};
  to_device(to, {&part, 1}, stream);
}

void CudaTransfer::to_device(void* to, std::span<const Bytes> parts, cudaStream_t stream) {
  cuda_check(cudaStreamSynchronize(stream), "copy to the device");
  copy_stretches(*this, in_stretches(to, parts),
                 [](StagedCopy& copy, const Stretch& stretch) { copy.send(stretch); });
}

void CudaTransfer::to_host(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  if (memory_side(device_, to) != MemorySide::pageable)
    return copy_directly(to, from, bytes, stream);
  cuda_check(cudaStreamSynchronize(stream), "copy from the device");
  Bytes part{static_cast<const std::byte*>(from), bytes};
  copy_stretches(*this, in_stretches(to, {&part, 1}),
                 [](StagedCopy& copy, const Stretch& stretch) { copy.fetch(stretch); });
}

}  // namespace stride
