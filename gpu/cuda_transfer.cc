#include "gpu/cuda_transfer.h"

#include <algorithm>
#include <cstring>

namespace stride {

namespace {

constexpr uint32_t pieces = 3;  // in flight
constexpr uint64_t copied_per_task = 256 << 10;

// An event of the device's.
class Event {
 public:
  Event() {
    cuda_check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "make an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  void record(cudaStream_t stream) { cuda_check(cudaEventRecord(event_, stream), "record"); }
  void wait() { cuda_check(cudaEventSynchronize(event_), "wait for the device"); }

 private:
  cudaEvent_t event_ = nullptr;
};

// Waits, whatever happens, before the staging memory that was declared before it goes.
class WaitAtEnd {
 public:
  explicit WaitAtEnd(cudaStream_t stream) : stream_(stream) {}
  ~WaitAtEnd() { (void)cudaStreamSynchronize(stream_); }
  WaitAtEnd(const WaitAtEnd&) = delete;

 private:
  cudaStream_t stream_;
};

}  // namespace

PinnedPool::Piece PinnedPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      PinnedMemory memory = std::move(idle_.back());
      idle_.pop_back();
      return Piece(this, std::move(memory));
    }
  }
  return Piece(this, PinnedMemory(staging_bytes));
}

void CudaTransfer::copy(void* to, const void* from, uint64_t bytes) {
  host_.parallel_for(bytes, copied_per_task, [&](uint64_t begin, uint64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                end - begin);
  });
}

void CudaTransfer::to_device(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  PinnedPool::Piece staging[pieces];
  Event sent[pieces];
  WaitAtEnd wait(stream);
  uint64_t number = 0;
  for (uint64_t at = 0; at < bytes; at += staging_bytes, ++number) {
    uint64_t n = std::min(staging_bytes, bytes - at);
    PinnedPool::Piece& piece = staging[number % pieces];
    if (number < pieces) {
      piece = pinned_.take();
    } else {
      sent[number % pieces].wait();
    }
    copy(piece.data(), static_cast<const std::byte*>(from) + at, n);
    cuda_check(cudaMemcpyAsync(static_cast<std::byte*>(to) + at, piece.data(), n,
                               cudaMemcpyHostToDevice, stream),
               "copy to the device");
    sent[number % pieces].record(stream);
  }
  cuda_check(cudaStreamSynchronize(stream), "copy to the device");
}

void CudaTransfer::to_host(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  PinnedPool::Piece staging[pieces];
  Event arrived[pieces];
  WaitAtEnd wait(stream);
  uint64_t count = (bytes + staging_bytes - 1) / staging_bytes;
  auto size = [&](uint64_t i) { return std::min(staging_bytes, bytes - i * staging_bytes); };
  for (uint64_t i = 0; i < count + pieces; ++i) {
    if (i >= pieces) {
      uint64_t done = i - pieces;
      if (done >= count) break;
      arrived[done % pieces].wait();
      copy(static_cast<std::byte*>(to) + done * staging_bytes, staging[done % pieces].data(),
           size(done));
    }
    if (i >= count) continue;
    if (i < pieces) staging[i] = pinned_.take();
    cuda_check(cudaMemcpyAsync(staging[i % pieces].data(),
                               static_cast<const std::byte*>(from) + i * staging_bytes, size(i),
                               cudaMemcpyDeviceToHost, stream),
               "copy from the device");
    arrived[i % pieces].record(stream);
  }
  cuda_check(cudaStreamSynchronize(stream), "copy from the device");
}

}  // namespace stride
