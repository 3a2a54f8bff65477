// stride doctor: what this machine has, and what will be fast on it and what not. And stride bench.
#pragma once

#include <string>

#include "adapters/cli/context.h"

namespace CLI {
class App;
}

namespace stride::cli {

struct DoctorArguments {
  std::string directory = ".";
  uint64_t megabytes = 256;
};

void add_doctor(CLI::App* command, DoctorArguments* arguments);
Outcome run_doctor(Context* context, const DoctorArguments& arguments);

// Becomes the program stride-bench beside this one; returns only where that is not to be.
Outcome run_bench(int argc, const char* const* argv);

}  // namespace stride::cli
