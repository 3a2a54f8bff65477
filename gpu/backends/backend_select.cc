#include "gpu/backend.h"
#include "gpu/device/device_faults.h"

namespace stride {

#if !defined(STRIDE_HAVE_CUDA)
Result<std::unique_ptr<Backend>> Backend::cuda(const CudaOptions&) {
  return Status(StatusCode::unavailable, "this build has no CUDA backend")
      .with_remedy("build where nvcc is installed, or use the host backend");
}

void DeviceFaults::fail_call(uint64_t, DeviceFault) {}
void DeviceFaults::clear() {}
uint64_t DeviceFaults::calls() { return 0; }
#endif

std::unique_ptr<Backend> Backend::automatic(unsigned threads) {
  auto device = cuda({.host_threads = threads});
  return device.ok() ? std::move(*device) : host(threads);
}

}  // namespace stride
