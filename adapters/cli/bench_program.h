// stride bench: the program stride-bench under this one's name.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/exit_status.h"

namespace stride::cli {

// Becomes the program stride-bench beside this one; returns only where that is not to be.
ExitStatus run_bench(std::vector<std::string> arguments);

}  // namespace stride::cli
