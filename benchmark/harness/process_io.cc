#include "benchmark/harness/process_io.h"

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

}  // namespace stride::benchmark
