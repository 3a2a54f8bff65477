// The command `stride-bench lookup`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"
#include "benchmark/harness/random_arguments.h"

namespace stride::benchmark {

struct LookupArguments {
  CommonArguments common{.engines = fastest_engines()};
  StrideArguments stride;
  RandomArguments random;
  std::string batches = "1,1k,100k,1m";
  bool cold = false;
  std::string memory_limit;  // empty: not given
};

void add_lookup(CLI::App* command, LookupArguments* lookup);
Status run_lookup_command(const LookupArguments& lookup);

}  // namespace stride::benchmark
