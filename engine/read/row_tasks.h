// The rows of a batch, as tasks for the threads of a backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/backend.h"
#include "storage/first_failure.h"
#include "storage/status.h"

namespace stride {

// A multiple of 64, so that no two threads share a word of the bitmap. The values of a task's rows
// fit the second-level cache of any machine.
inline constexpr uint64_t rows_per_task = 2048;

// Tasks of rows [begin, end), where begin is a multiple of rows_per_task.
template <class Body>
Status for_each_task(Backend& backend, uint64_t begin, uint64_t end, const Body& body) {
  FirstFailure failure;
  uint64_t tasks = (end - begin + rows_per_task - 1) / rows_per_task;
  backend.parallel_for(tasks, 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t t = first; t < last && !failure.failed(); ++t) {
      uint64_t from = begin + t * rows_per_task;
      failure.report(body(from, std::min(end, from + rows_per_task)));
    }
  });
  return failure.status();
}

}  // namespace stride
