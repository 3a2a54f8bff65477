// Where work runs: the threads of the host and, where there is one, the memory of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/status.h"

namespace stride {

class CudaDevice;

// Memory of a backend's device or of the host. Must not outlive the backend.
class BackendMemory {
 public:
  virtual ~BackendMemory() = default;
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

 protected:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

// What the machine allows, measured: a search cannot be faster than its memory accesses.
struct BackendLimits {
  double gathers_per_second = 0;     // of random memory sectors: 32 bytes of a device, 64 of a host
  double copy_bytes_per_second = 0;  // read and written, in the memory that is searched
  // 0 where there is no device:
  double bus_in_bytes_per_second = 0;    // from pinned host memory to the device
  double bus_out_bytes_per_second = 0;   // and back
  double bus_both_bytes_per_second = 0;  // each way, both at once
};

// One of several devices behind a backend.
struct DeviceState {
  std::string name;
  Status lost;  // ok while it works, else what it failed with
};

// Every call may be made from several threads at once.
class ExecutionContext {
 public:
  virtual ~ExecutionContext() = default;

  virtual std::string name() const = 0;  // "host (16 threads)", "cuda:0 (NVIDIA H200)"
  virtual unsigned threads() const = 0;
  virtual bool has_device() const = 0;
  // Of a backend over several devices: each of them, and how many have been lost so far. Else none.
  virtual std::vector<DeviceState> device_states() const { return {}; }
  virtual uint64_t lost_devices() const { return 0; }
  // The device itself, for what backends of several share (gpu/several/). Null: it has none of its
  // own.
  virtual CudaDevice* cuda_device() { return nullptr; }

  // Memory for queries and results. Of several devices: the first share of it lies on the first
  // device, and so on, where the machine can do that. resource_exhausted: no room within the memory
  // limit.
  virtual Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) = 0;
  // Host memory that the device reads and writes at the speed of the bus: queries and results there
  // need no copy on the host. Plain memory where there is no device.
  virtual Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) = 0;
  // Whether a pointer is to memory of the device, or of one of several.
  virtual bool is_on_device(const void* p) const = 0;
  // Between any two of host memory and that of devices.
  virtual Status copy(void* to, const void* from, uint64_t bytes) = 0;

  // Measures for some tenths of a second; of several devices the first. table_bytes: where the
  // gathers go, at least 1 MiB.
  virtual Status measure_limits(uint64_t table_bytes, BackendLimits* limits) = 0;

  // Calls body(begin, end) for disjoint ranges that cover [0, n), each of about `grain` or more,
  // on the pool's threads. A single range is run on the calling thread without waking anybody.
  virtual void parallel_for(uint64_t n, uint64_t grain,
                            const std::function<void(uint64_t begin, uint64_t end)>& body) = 0;
};

}  // namespace stride
