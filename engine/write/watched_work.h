// Carries work out on another thread, while the caller's looks how far it is.
#pragma once

#include <functional>

#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

// Calls work(watch) on a thread of its own and returns what it does; watch is not yet a Scope.
// Calls goes_on(watch) on this one, at once and then at least every 50 ms, until that is false or
// throws, which stops the watch, or the work is done. What it has thrown becomes a part of the
// status. resource_exhausted: there was no thread, and nothing was called.
Status run_watched(const std::function<Status(WorkWatch*)>& work,
                   const std::function<bool(const WorkWatch&)>& goes_on);

}  // namespace stride
