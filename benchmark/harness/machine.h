// The machine that a result was measured on, and the memory of this process.
#pragma once

#include <cstdint>
#include <string>

namespace stride::benchmark {

struct Machine {
  std::string cpu;     // model name
  unsigned cores = 1;  // that this process may use
  uint64_t memory_bytes = 0;
  std::string kernel;

  // "AMD EPYC 9124, 2 cores, 23.4 GiB, Linux 6.1.0"
  std::string to_string() const;
};

Machine this_machine();

// Bytes of this process in memory, mapped files included; now, and at the most since
// reset_peak_resident(). 0 where the system does not tell.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();
void reset_peak_resident();
// Gives freed memory back to the system, so that it is not counted for the next engine.
void return_freed_memory();

}  // namespace stride::benchmark
