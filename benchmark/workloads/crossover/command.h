// The command `stride-bench crossover`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"
#include "benchmark/harness/random_arguments.h"

namespace stride::benchmark {

struct CrossoverArguments {
  CommonArguments common;
  StrideArguments stride;
  RandomArguments random;
  std::string largest = "1048576";
};

void add_crossover(CLI::App* command, CrossoverArguments* crossover);
Status run_crossover_command(const CrossoverArguments& crossover);

}  // namespace stride::benchmark
