// Turns what a call throws for want of memory into a Status.
#pragma once

#include <new>

#include "storage/status.h"

namespace stride {

// call() returns a Status or a Result.
template <class Call>
auto guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::resource_exhausted, "not enough memory for the batch")
        .with_remedy("use smaller batches or free some memory");
  }
}

}  // namespace stride
