#include "adapters/python/watch.h"

#include "adapters/python/keys.h"
#include "engine/watched_call.h"

namespace stride::python {

bool Watch::operator()(double share) {
  if (failed_ || is_left_behind()) return false;
  nb::gil_scoped_acquire locked;
  try {
    check_signals();
    if (!progress_.is_none()) progress_(share);
  } catch (nb::python_error& error) {
    failed_ = true;
    type_ = nb::borrow(error.type());
    value_ = nb::borrow(error.value());
    return false;
  } catch (...) {
    failed_ = true;
    return false;
  }
  return true;
}

void Watch::rethrow() const {
  if (!failed_ || !type_.is_valid()) return;
  PyErr_SetObject(type_.ptr(), value_.ptr());
  throw nb::python_error();
}

void check_progress(nb::handle progress) {
  if (!progress.is_none() && !PyCallable_Check(progress.ptr()))
    raise("InvalidType", "progress is " + shown(progress),
          "give a function that takes a share from 0 to 1");
}

void run_watched(const std::function<Status()>& work, const TableForm* about) {
  Watch watch{nb::none()};
  Status status;
  {
    const Unlocked unlocked;
    status = call_watched(work, [&] { return watch(0); });
  }
  watch.rethrow();
  if (about) check(*about, status);
  check(status);
}

}  // namespace stride::python
