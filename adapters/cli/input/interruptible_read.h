// Reads that Ctrl-C and SIGTERM end.
#pragma once

#include <cstddef>
#include <string>

#include "adapters/cli/exit_status.h"

namespace stride::cli {

// Waits until there is something to read, or for an interrupt, and reads at most `bytes`.
// name: of the file, in errors. got: 0 at the end of the file.
ExitStatus interruptible_read(int fd, const std::string& name, void* to, size_t bytes, size_t* got);

}  // namespace stride::cli
