// How a C function ends: with a number, and with the rest of a Status kept for the thread.
#pragma once

#include <exception>

#include "adapters/c/stridedb.h"
#include "storage/status.h"

namespace stride::c {

// Keeps what went wrong for stride_last_error(), and returns its number. Precondition: !s.ok().
int fail(const Status& s) noexcept;
// A status that only the C interface has.
int fail(int status, const Status& s) noexcept;

// A failure that no Status could be made of.
int fail_without_memory() noexcept;

// Runs the body of a C function, which returns a Status. Nothing that it throws gets out.
template <class Body>
int run(const Body& body) noexcept {
  try {
    Status s = body();
    return s.ok() ? 0 : fail(s);
  } catch (const std::exception&) {
    return fail_without_memory();
  }
}

// STRIDE_TOO_SMALL: the caller's memory. describe() returns a Status that says so.
template <class Describe>
int fail_too_small(const Describe& describe) noexcept {
  try {
    return fail(STRIDE_TOO_SMALL, describe());
  } catch (const std::exception&) {
    return fail_without_memory();
  }
}

}  // namespace stride::c
