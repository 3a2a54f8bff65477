// How much memory there is.
#pragma once

#include <cstdint>
#include <string>

namespace stride::cli {

// Bytes of one line of Linux's /proc/meminfo, such as "MemTotal". 0: it has no such line.
uint64_t memory_bytes(const std::string& meminfo, const std::string& line);

// What rows may take that wait for a commit: 45 % of what is available, for the commit needs about
// as much again for the image of the table.
uint64_t memory_for_rows(const std::string& meminfo);

}  // namespace stride::cli
