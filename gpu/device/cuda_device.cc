#include "gpu/device/cuda_device.h"

#include <cuda_runtime.h>

#include "gpu/device/device_faults.h"
#include "gpu/device/spread_memory.h"

namespace stride {

namespace {

std::atomic<uint64_t> calls_made{0}, failing_call{0};  // 0: none
std::atomic<DeviceFault> fault_of_call{DeviceFault::lost};
std::atomic<uint32_t> failing_group{DeviceFaults::any_group};
thread_local uint32_t group_of_thread = DeviceFaults::any_group;

// What a call reports: the truth, or what a test wants.
cudaError_t with_faults(cudaError_t error) {
  const uint32_t group = failing_group.load(std::memory_order_relaxed);
  if (group != DeviceFaults::any_group && group != group_of_thread) return error;
  uint64_t call = calls_made.fetch_add(1, std::memory_order_relaxed) + 1;
  uint64_t failing = failing_call.load(std::memory_order_relaxed);
  if (failing == 0 || call < failing || error != cudaSuccess) return error;
  if (fault_of_call == DeviceFault::lost) return cudaErrorDevicesUnavailable;
  return call == failing ? cudaErrorMemoryAllocation : error;
}

}  // namespace

void DeviceFaults::fail_call(uint64_t call, DeviceFault fault, uint32_t group) {
  fault_of_call = fault;
  failing_group = group;
  calls_made = 0;
  failing_call = call;
}
void DeviceFaults::clear() {
  failing_call = 0;
  failing_group = any_group;
  calls_made = 0;
}
uint64_t DeviceFaults::calls() { return calls_made; }

Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  // An error that is not sticky must not be found by the next call.
  (void)cudaGetLastError();
  std::string message = std::string("CUDA: ") + what + ": " + cudaGetErrorString(error);
  switch (error) {
    case cudaErrorMemoryAllocation:
      return Status(StatusCode::resource_exhausted, message)
          .with_remedy("lower the memory limit, or free memory of the device");
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
      return Status(StatusCode::unavailable, message)
          .with_remedy("install a driver for the device, or use the host backend");
    default:
      return Status(StatusCode::io_error, message)
          .with_remedy("reopen the database, or use the host backend");
  }
}

void cuda_check(cudaError_t error, const char* what) {
  error = with_faults(error);
  if (error != cudaSuccess) throw CudaFailure(cuda_status(error, what));
}

CudaDevice::CudaDevice(int number, uint64_t memory_limit, uint32_t fault_group)
    : CudaDevice(number) {
  fault_group_ = fault_group;
  const KeptDevice kept;
  int count = 0;
  cuda_check(cudaGetDeviceCount(&count), "look for devices");
  if (number < 0 || number >= count) {
    throw CudaFailure(Status(StatusCode::unavailable, "CUDA: device " + std::to_string(number) +
                                                          " of " + std::to_string(count))
                          .with_remedy("name a device that is there, or use the host backend"));
  }
  enter();
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, number), "read the device's properties");
  model_ = properties.name;
  generation_ = properties.major;
  reads_pageable_ = properties.pageableMemoryAccess != 0;
  if (!properties.memoryPoolsSupported || properties.major < 7) {
    throw CudaFailure(Status(StatusCode::unavailable, "CUDA: " + model_ + " is too old")
                          .with_remedy("use the host backend"));
  }
  size_t free = 0, total = 0;
  cuda_check(cudaMemGetInfo(&free, &total), "ask for free memory");
  limit_ = memory_limit ? memory_limit : free / 10 * 9;

  cudaMemPoolProps pool{};
  pool.allocType = cudaMemAllocationTypePinned;
  pool.location.type = cudaMemLocationTypeDevice;
  pool.location.id = number;
  cuda_check(cudaMemPoolCreate(&pool_, &pool), "make a memory pool");
  // What is freed stays in the pool: taking it from the driver costs a hundred times as much.
  uint64_t keep = limit_;
  cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
             "set up the memory pool");
  cuda_check(cudaStreamCreateWithFlags(&home_, cudaStreamNonBlocking), "make a stream");
}

CudaDevice::~CudaDevice() {
  if (!pool_) return;
  const KeptDevice kept;
  if (cudaSetDevice(number_) != cudaSuccess) return;
  for (cudaStream_t stream : idle_) cudaStreamDestroy(stream);
  if (home_) {
    cudaStreamSynchronize(home_);
    cudaStreamDestroy(home_);
  }
  cudaMemPoolDestroy(pool_);
}

KeptDevice::KeptDevice()
    : group_(group_of_thread), is_known_(cudaGetDevice(&number_) == cudaSuccess) {
  if (!is_known_) (void)cudaGetLastError();
}

KeptDevice::~KeptDevice() {
  group_of_thread = group_;
  int now = 0;
  if (is_known_ && cudaGetDevice(&now) == cudaSuccess && now != number_)
    (void)cudaSetDevice(number_);
}

void CudaDevice::enter() const {
  group_of_thread = fault_group_;
  cuda_check(cudaSetDevice(number_), "select the device");
}

bool CudaDevice::can_reach(int peer) const {
  int can = 0;
  cuda_check(cudaDeviceCanAccessPeer(&can, number_, peer), "look for a way between devices");
  return can != 0;
}

void CudaDevice::reach(int peer) {
  const KeptDevice kept;
  enter();
  if (!can_reach(peer)) return;
  cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
    error = cudaSuccess;
  }
  cuda_check(error, "open the way between devices");
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = peer;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  int is_reached = 0;
  cuda_check(cudaDeviceCanAccessPeer(&is_reached, peer, number_), "look for a way between devices");
  if (is_reached)
    cuda_check(cudaMemPoolSetAccess(pool_, &access, 1), "share the memory of devices");
}

namespace {

[[noreturn]] void throw_over_limit(uint64_t bytes, uint64_t limit, uint64_t used) {
  throw CudaFailure(Status(StatusCode::resource_exhausted,
                           "CUDA: " + std::to_string(bytes) +
                               " bytes more than the memory limit of " + std::to_string(limit) +
                               " bytes allows (" + std::to_string(used) + " used)")
                        .with_remedy("raise the device's memory limit, or use smaller batches"));
}

}  // namespace

void CudaDevice::require(uint64_t bytes) const {
  uint64_t used = used_;
  if (bytes > limit_ || used > limit_ - bytes) throw_over_limit(bytes, limit_, used);
}

void CudaDevice::take_budget(uint64_t bytes) {
  uint64_t used = used_;
  while (bytes <= limit_ && used <= limit_ - bytes &&
         !used_.compare_exchange_weak(used, used + bytes)) {
  }
  if (bytes > limit_ || used > limit_ - bytes) {
    throw_over_limit(bytes, limit_, used);
  }
}

void* CudaDevice::allocate(uint64_t bytes, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  take_budget(bytes);
  void* memory = nullptr;
  cudaError_t error = with_faults(cudaSuccess);
  if (error == cudaSuccess) error = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
  if (error != cudaSuccess) {
    used_ -= bytes;
    throw CudaFailure(cuda_status(error, "allocate device memory"));
  }
  return memory;
}

void CudaDevice::free(void* memory, uint64_t bytes, cudaStream_t stream) noexcept {
  if (!memory) return;
  if (cudaFreeAsync(memory, stream) == cudaSuccess) used_ -= bytes;
}

uint32_t CudaDevice::attribute(cudaDeviceAttr which) const {
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, which, number_), "ask what the device is like");
  return static_cast<uint32_t>(value);
}

bool CudaDevice::owns(const void* p) const {
  if (is_spread_over(p, number_)) return true;
  cudaPointerAttributes attributes{};
  if (!p || cudaPointerGetAttributes(&attributes, p) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice && attributes.device == number_;
}

bool CudaDevice::has(const void* p) const {
  const std::optional<int> part = device_of_part(p);
  return part ? *part == number_ : owns(p);
}

cudaStream_t CudaDevice::take_stream() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      cudaStream_t stream = idle_.back();
      idle_.pop_back();
      return stream;
    }
    idle_.reserve(streams_ + 1);  // there is room for all when they come back
    ++streams_;
  }
  cudaStream_t stream;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
  return stream;
}

void CudaDevice::give_back(cudaStream_t stream) {
  // Whatever failed on the way, nothing of the call may run on: its arrays go back to the pool.
  (void)cudaStreamSynchronize(stream);
  std::lock_guard lock(mutex_);
  idle_.push_back(stream);
}

}  // namespace stride
