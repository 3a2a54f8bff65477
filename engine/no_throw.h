// Turns what the standard library throws into a Status, at the edge of the public interface.
#pragma once

#include <exception>
#include <new>

#include "storage/status.h"

namespace stride {

// Calls body, which returns a Status.
template <class Body>
Status no_throw(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::resource_exhausted, "out of memory")
        .with_remedy("use smaller batches or transactions, or give the process more memory");
  } catch (const std::exception& e) {
    return Status(StatusCode::resource_exhausted, e.what());
  }
}

}  // namespace stride
