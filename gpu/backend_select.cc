#include "gpu/backend.h"

namespace stride {

#if !defined(STRIDE_HAVE_CUDA)
Result<std::unique_ptr<Backend>> Backend::cuda(const CudaOptions&) {
  return Status(StatusCode::unavailable, "this build has no CUDA backend")
      .with_remedy("build where nvcc is installed, or use the host backend");
}
#endif

std::unique_ptr<Backend> Backend::automatic(unsigned threads) {
  auto device = cuda({.host_threads = threads});
  return device.ok() ? std::move(*device) : host(threads);
}

}  // namespace stride
