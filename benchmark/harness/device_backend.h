// The device that a workload measures beside the host.
#pragma once

#include <memory>

#include "engine/options.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride::benchmark {

// Null where `wanted` is the host, or where there is no device and it need not be there; its error
// where `wanted` is cuda. host_threads: for what the device leaves to the host.
inline Result<std::unique_ptr<Backend>> device_backend(BackendKind wanted, unsigned host_threads) {
  if (wanted == BackendKind::host) return std::unique_ptr<Backend>();
  Result<std::unique_ptr<Backend>> made = Backend::cuda({.host_threads = host_threads});
  if (made.ok() || wanted == BackendKind::cuda) return made;
  return std::unique_ptr<Backend>();
}

}  // namespace stride::benchmark
