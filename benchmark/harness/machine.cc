#include "benchmark/harness/machine.h"

#include <malloc.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace stride::benchmark {
namespace {

// What follows "NAME:" in a file of /proc.
std::string proc_field(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    size_t colon = line.find(':');
    size_t first = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string() : line.substr(first);
  }
  return {};
}

uint64_t proc_kilobytes(const char* file, const std::string& name) {
  return std::strtoull(proc_field(file, name).c_str(), nullptr, 10) * 1024;
}

}  // namespace

std::string Machine::to_string() const {
  char memory[32];
  std::snprintf(memory, sizeof(memory), "%.1f GiB", static_cast<double>(memory_bytes) / (1 << 30));
  return cpu + ", " + std::to_string(cores) + (cores == 1 ? " core, " : " cores, ") + memory +
         ", " + kernel;
}

Machine this_machine() {
  Machine machine;
  machine.cpu = proc_field("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown processor";
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    machine.cores = static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  }
  machine.memory_bytes = proc_kilobytes("/proc/meminfo", "MemTotal");
  utsname system;
  if (uname(&system) == 0) machine.kernel = std::string(system.sysname) + " " + system.release;
  return machine;
}

uint64_t resident_bytes() { return proc_kilobytes("/proc/self/status", "VmRSS"); }

uint64_t peak_resident_bytes() { return proc_kilobytes("/proc/self/status", "VmHWM"); }

void reset_peak_resident() { std::ofstream("/proc/self/clear_refs") << "5"; }

void return_freed_memory() { malloc_trim(0); }

}  // namespace stride::benchmark
