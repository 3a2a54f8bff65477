// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace stride {

// Bytes: the machine's memory, or, where that is less, the limit of the control group that this
// process is in, or of one around it (Linux's cgroup, version 1 or 2, as containers have them).
uint64_t system_memory_bytes();

// The smallest such limit; all ones: there is none. process: where /proc/self/cgroup is. mount:
// where /sys/fs/cgroup is.
uint64_t cgroup_memory_limit(const std::string& process, const std::string& mount);

}  // namespace stride
