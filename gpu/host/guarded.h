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
    return Status::out_of_memory();
  }
}

}  // namespace stride
