// What a host backend answers where only a device can do it.
#pragma once

#include "storage/status.h"

namespace stride {

inline Status no_device() {
  return Status(StatusCode::unavailable, "the host backend has no device")
      .with_remedy("use the CUDA backend, or the call that returns values in host memory");
}

}  // namespace stride
