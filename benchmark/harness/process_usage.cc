#include "benchmark/harness/process_usage.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace stride::benchmark {

ProcessIo process_io() {
  ProcessIo io;
  std::ifstream file("/proc/self/io");
  std::string name;
  uint64_t number = 0;
  while (file >> name >> number) {
    if (name == "write_bytes:") io.storage_bytes = number;
    if (name == "wchar:") io.call_bytes = number;
  }
  return io;
}

double cpu_seconds() {
  struct rusage usage {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace stride::benchmark
