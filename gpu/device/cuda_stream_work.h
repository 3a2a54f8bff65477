// Work that a caller wants on a stream of their own.
#pragma once

#include <functional>

#include "gpu/device/cuda_device.h"
#include "storage/status.h"

namespace stride {

using MarkUse = std::function<void(cudaStream_t)>;

// Starts work(stream) on the caller's stream (a cudaStream_t), where mark(stream) keeps what the
// work uses until it is done. Where `stream` is null, waits until the work is done.
template <class Work>
Status on_stream(CudaDevice& device, void* stream, const MarkUse& mark, const Work& work) {
  return cuda_guarded([&] {
    if (!stream) {
      CudaStream own(device);
      work(own);
      own.wait();
      return Status();
    }
    OnDevice on(device);
    auto* to = static_cast<cudaStream_t>(stream);
    // Whatever fails, what was started goes on.
    try {
      work(to);
    } catch (...) {
      mark(to);
      throw;
    }
    mark(to);
    return Status();
  });
}

}  // namespace stride
