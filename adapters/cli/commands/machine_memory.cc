#include "adapters/cli/commands/machine_memory.h"

#include <fstream>

namespace stride::cli {

uint64_t memory_bytes(const std::string& meminfo, const std::string& line) {
  std::ifstream in(meminfo);
  std::string name, rest;
  for (uint64_t kilobytes; in >> name >> kilobytes; std::getline(in, rest))
    if (name == line + ":") return kilobytes * 1024;
  return 0;
}

uint64_t memory_for_rows(const std::string& meminfo) {
  // Memory that holds copies of files counts, for the system gives it to whoever asks.
  uint64_t available = memory_bytes(meminfo, "MemAvailable");
  return available ? available / 100 * 45 : uint64_t{1} << 62;
}

}  // namespace stride::cli
