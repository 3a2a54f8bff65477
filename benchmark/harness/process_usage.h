// What this process has used so far, as the kernel counts it: bytes written to files, and time.
#pragma once

#include <cstdint>

namespace stride::benchmark {

struct ProcessIo {
  // Pages that have to go to a disk: 0 on a file system in memory. A page may be large, and counts
  // whole each time it becomes dirty.
  uint64_t storage_bytes = 0;
  uint64_t call_bytes = 0;  // that were given to write calls: not what is written through a map

  ProcessIo operator-(const ProcessIo& before) const {
    return {storage_bytes - before.storage_bytes, call_bytes - before.call_bytes};
  }
};

// All 0 where the system does not tell.
ProcessIo process_io();

// What all threads have spent on processors: it says more than a clock does where others use the
// machine, too.
double cpu_seconds();

}  // namespace stride::benchmark
