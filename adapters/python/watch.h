// Ctrl-C in calls that take long: another thread does the work, while the caller's looks for
// signals.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "adapters/python/errors.h"
#include "adapters/python/fields.h"
#include "storage/status.h"

namespace stride::python {

namespace nb = nanobind;

// Looks for signals, and calls `progress` with a share from 0 to 1 unless it is None.
class Watch {
 public:
  explicit Watch(nb::object progress) : progress_(std::move(progress)) {}

  // Whether the work goes on: not after a signal whose handler raises, nor after an exception of
  // `progress`. The GIL is not held.
  bool operator()(double share);
  // Throws what has ended the work. The GIL is held.
  void rethrow() const;

 private:
  nb::object progress_;
  bool failed_ = false;
  nb::object type_, value_;
};

// InvalidType: it is neither None nor a function.
void check_progress(nb::handle progress);

// As run(), for work that call_watched() can end (engine/watched_call.h): Ctrl-C does. about: null,
// or the table whose keys an error may tell of.
void run_watched(const std::function<Status()>& work, const TableForm* about = nullptr);

// The same for a batch of so many rows; few are not worth a thread.
template <class Work>
void run_watched(uint64_t rows, const Work& work) {
  constexpr uint64_t min_rows = 1 << 20;
  if (rows < min_rows)
    run(work);
  else
    run_watched(work);
}

}  // namespace stride::python
