// A CUDA device as this library uses it: memory from a pool within a budget, streams that are
// borrowed for a call, and failures as exceptions inside gpu/, which the backend turns into a
// Status.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

class CudaFailure : public std::exception {
 public:
  explicit CudaFailure(Status status) : status_(std::move(status)), text_(status_.to_string()) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Status status_;
  std::string text_;
};

// Throws CudaFailure where a call failed. what: the work that was to be done.
void cuda_check(cudaError_t error, const char* what);
Status cuda_status(cudaError_t error, const char* what);

// As no_throw(), for calls that throw what CUDA and Thrust report too.
template <class Call>
auto cuda_guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  } catch (const CudaFailure& failure) {
    return failure.status();
  } catch (const StopRequested&) {
    return WorkWatch::cancelled();
  } catch (const std::exception& error) {
    return Status(StatusCode::io_error, std::string("CUDA: ") + error.what())
        .with_remedy("use the host backend");
  }
}

class CudaDevice {
 public:
  // Throws CudaFailure (unavailable) where there is no such device. memory_limit: bytes; 0: nine
  // tenths of what is free. fault_group: CudaOptions.
  CudaDevice(int number, uint64_t memory_limit, uint32_t fault_group = 0);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;

  int number() const { return number_; }
  const std::string& model() const { return model_; }
  // Returns the major number of the compute capability: 9 is an H100.
  int generation() const { return generation_; }
  // A property that is not negative. Throws CudaFailure.
  uint32_t attribute(cudaDeviceAttr which) const;
  // Whether a copy from pageable memory may still read it when the call returns.
  bool reads_pageable_memory() const { return reads_pageable_; }
  // For what outlives the call that made it: where it is freed.
  cudaStream_t home_stream() const { return home_; }

  // Takes memory of the pool, ordered on the stream. Throws CudaFailure (resource_exhausted) where
  // the budget or the device's memory does not suffice. The memory is aligned to 256 bytes.
  void* allocate(uint64_t bytes, cudaStream_t stream);
  void free(void* memory, uint64_t bytes, cudaStream_t stream) noexcept;

  // Throws as allocate() where so much is not left of the budget.
  void require(uint64_t bytes) const;
  // Counts memory that does not come from the pool. Throws as allocate().
  void take_budget(uint64_t bytes);
  void give_back_budget(uint64_t bytes) noexcept { used_ -= bytes; }
  // What resident indexes leave for batches on their way.
  uint64_t reserve() const { return limit_ / 4 < max_reserve ? limit_ / 4 : max_reserve; }

  // Whether a pointer is to memory of this device, or to memory of which it has a part
  // (gpu/device/spread_memory.h).
  bool owns(const void* p) const;
  // Whether a byte lies here, as far as memory that is spread over devices goes.
  bool has(const void* p) const;
  // Makes this the calling thread's device.
  void enter() const;
  // Lets this device use the memory of another one, and that one the memory of this, as far as the
  // machine has a way between them. Throws CudaFailure.
  void reach(int peer);
  // Whether the machine has a way for this device to the memory of another one. Throws CudaFailure.
  bool can_reach(int peer) const;

 private:
  static constexpr uint64_t max_reserve = 256 << 20;
  friend class LentStream;
  // Nothing yet, so that what a failure leaves behind is taken apart.
  explicit CudaDevice(int number) : number_(number) {}
  cudaStream_t take_stream();
  void give_back(cudaStream_t stream);

  int number_;
  int generation_ = 0;
  uint32_t fault_group_ = 0;
  std::string model_;
  bool reads_pageable_ = false;
  uint64_t limit_ = 0;
  std::atomic<uint64_t> used_{0};
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t home_ = nullptr;
  std::mutex mutex_;
  uint64_t streams_ = 0;  // all that there are
  std::vector<cudaStream_t> idle_;
};

// Gives the calling thread the device back that it had.
class KeptDevice {
 public:
  KeptDevice();
  ~KeptDevice();
  KeptDevice(const KeptDevice&) = delete;

 private:
  uint32_t group_;  // of faults
  int number_ = 0;
  bool is_known_;
};

// Makes a device the calling thread's as long as this lives.
class OnDevice {
 public:
  explicit OnDevice(const CudaDevice& device) { device.enter(); }

 private:
  KeptDevice kept_;
};

// A stream of the device's. Precondition: that is the thread's. What is still running on it when it
// goes is waited for.
class LentStream {
 public:
  explicit LentStream(CudaDevice& device) : device_(device), stream_(device.take_stream()) {}
  ~LentStream() { device_.give_back(stream_); }
  LentStream(const LentStream&) = delete;

  operator cudaStream_t() const { return stream_; }  // NOLINT: it is one
  CudaDevice& device() const { return device_; }
  void wait() const { cuda_check(cudaStreamSynchronize(stream_), "wait for the device"); }

 private:
  CudaDevice& device_;
  cudaStream_t stream_;
};

// The same for one call, which makes the device the thread's for as long.
class CudaStream : OnDevice, public LentStream {
 public:
  explicit CudaStream(CudaDevice& device) : OnDevice(device), LentStream(device) {}
};

// An array in device memory. Freed on the stream where it was made.
template <class T>
class CudaArray {
 public:
  CudaArray() = default;
  CudaArray(CudaDevice& device, cudaStream_t stream, uint64_t n)
      : device_(&device), stream_(stream), size_(n) {
    if (n > max_elements) throw std::bad_alloc();
    data_ = static_cast<T*>(device.allocate(bytes(), stream));
  }
  CudaArray(CudaArray&& other) noexcept { *this = std::move(other); }
  CudaArray& operator=(CudaArray&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~CudaArray() {
    if (data_) device_->free(data_, bytes(), stream_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  uint64_t size() const { return size_; }
  // Padded, so that whole words and sectors may be read at its end.
  uint64_t bytes() const { return (size_ * sizeof(T) + 63) / 64 * 64; }
  // What lies behind the end, up to a whole sector, is read together with the last element.
  void clear_padding() {
    uint64_t used = size_ * sizeof(T);
    if (bytes() == used) return;
    cuda_check(
        cudaMemsetAsync(reinterpret_cast<std::byte*>(data_) + used, 0, bytes() - used, stream_),
        "clear memory");
  }
  // The array outlives its stream's call.
  void outlive_stream() {
    if (device_) stream_ = device_->home_stream();
  }

 private:
  static constexpr uint64_t max_elements = (UINT64_MAX - 64) / sizeof(T);

  CudaDevice* device_ = nullptr;
  cudaStream_t stream_ = nullptr;
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

// Work on streams that others have to wait for: it still uses what is about to be freed, say.
class StreamUses {
 public:
  StreamUses() = default;
  ~StreamUses() {
    for (cudaEvent_t use : uses_) (void)cudaEventDestroy(use);
  }
  StreamUses(const StreamUses&) = delete;

  // The work so far on the stream.
  void add(cudaStream_t stream) {
    std::lock_guard lock(mutex_);
    std::erase_if(uses_, [](cudaEvent_t use) {
      return cudaEventQuery(use) == cudaSuccess && cudaEventDestroy(use) == cudaSuccess;
    });
    (void)cudaGetLastError();  // that one is not ready is no error
    uses_.reserve(uses_.size() + 1);
    cudaEvent_t use = nullptr;
    cuda_check(cudaEventCreateWithFlags(&use, cudaEventDisableTiming), "make an event");
    uses_.push_back(use);
    cuda_check(cudaEventRecord(use, stream), "record a use");
  }
  // What comes on the stream waits for all of it, and it is forgotten.
  void hold_back(cudaStream_t stream) {
    std::lock_guard lock(mutex_);
    for (cudaEvent_t use : uses_) {
      (void)cudaStreamWaitEvent(stream, use, 0);
      (void)cudaEventDestroy(use);
    }
    uses_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> uses_;  // that may not be done yet
};

// How many bytes of pinned host memory go to or from a device in one piece.
inline constexpr uint64_t staging_bytes = 2 << 20;

// Pinned host memory.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(uint64_t bytes) {
    if (cudaMallocHost(&data_, bytes) == cudaSuccess) return;
    (void)cudaGetLastError();
    throw CudaFailure(
        Status(StatusCode::resource_exhausted,
               "CUDA: no " + std::to_string(bytes) + " bytes of pinned memory")
            .with_remedy("free some of the host's memory, or use less of it at once"));
  }
  PinnedMemory(PinnedMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~PinnedMemory() {
    if (data_) cudaFreeHost(data_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace stride
