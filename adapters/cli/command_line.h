// stride: a database from the command line. docs/cli.md describes it.
#pragma once

#include "adapters/cli/environment.h"

namespace stride::cli {

// Runs one command; the exit code (exit_status.h). SIGPIPE must be ignored.
int run(int argc, const char* const* argv, const Environment& environment = {});

}  // namespace stride::cli
