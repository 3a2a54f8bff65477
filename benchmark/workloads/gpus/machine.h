// The backend over a number of devices, and what the devices' memory and links allow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmark/workloads/gpus/workload.h"
#include "gpu/backend.h"

namespace stride::benchmark {

// Measured with all devices at once.
struct GpusLimits {
  double bus_both_bytes_per_second = 0;  // each way, both at once; of all devices together
  double bus_out_bytes_per_second = 0;   // one way alone
  double link_bytes_per_second = 0;      // from the first device to the second; 0: there is one
};

class GpusMachine {
 public:
  // unavailable: there are not so many GPUs.
  static Result<std::unique_ptr<GpusMachine>> make(const GpusOptions& options, uint64_t devices,
                                                   const std::shared_ptr<Backend>& host);

  uint64_t devices() const { return parts_.size(); }
  std::string name() const {
    return std::to_string(devices()) + (devices() == 1 ? " device" : " devices");
  }
  Backend& backend() const { return *backend_; }
  Backend& first() const { return *parts_[0]; }
  const GpusLimits& limits() const { return limits_; }

  Status measure_limits(bool one_gpu);

 private:
  std::vector<std::shared_ptr<Backend>> parts_;
  std::shared_ptr<Backend> backend_;  // with one device that itself
  GpusLimits limits_;
};

}  // namespace stride::benchmark
