// Turns what the standard library throws into a Status: at the edge of the public interface, and
// where a thread has nobody above it who would catch it.
#pragma once

#include <exception>
#include <new>

#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

// Calls body, which returns a Status or a Result.
template <class Body>
auto no_throw(const Body& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  } catch (const StopRequested&) {
    return WorkWatch::cancelled();
  } catch (const std::exception& e) {
    try {
      return Status(StatusCode::resource_exhausted, e.what());
    } catch (...) {
      return Status::out_of_memory();
    }
  }
}

}  // namespace stride
