#include "storage/system_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace stride {
namespace {

constexpr uint64_t no_limit = ~uint64_t{0};

// "max", or nothing, is no limit.
uint64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  uint64_t bytes = 0;
  return file >> bytes ? bytes : no_limit;
}

// The smallest limit of the group and of all above it. In a container the paths that the kernel
// names may not be there, and its own group is at the mount.
uint64_t smallest_limit(const std::string& mount, std::string group, const std::string& file) {
  uint64_t limit = read_limit(mount + "/" + file);
  while (group.size() > 1) {
    limit = std::min(limit, read_limit(mount + group + "/" + file));
    group.erase(group.rfind('/'));
  }
  return limit;
}

}  // namespace

// Lines of /proc/self/cgroup are NUMBER:CONTROLLERS:PATH, with no controllers in version 2.
uint64_t cgroup_memory_limit(const std::string& process, const std::string& mount) {
  uint64_t limit = no_limit;
  std::ifstream groups(process);
  for (std::string line; std::getline(groups, line);) {
    const size_t controllers = line.find(':');
    const size_t path =
        controllers == std::string::npos ? controllers : line.find(":/", controllers + 1);
    if (path == std::string::npos) continue;
    const std::string group = line.substr(path + 1);
    const std::string names = "," + line.substr(controllers + 1, path - controllers - 1) + ",";
    if (names == ",,")
      limit = std::min(limit, smallest_limit(mount, group, "memory.max"));
    else if (names.find(",memory,") != std::string::npos)
      limit = std::min(limit, smallest_limit(mount + "/memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

uint64_t system_memory_bytes() {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(machine, cgroup_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup"));
}

}  // namespace stride
