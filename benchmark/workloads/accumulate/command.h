// The command `stride-bench accumulate`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"

namespace stride::benchmark {

struct AccumulateArguments {
  CommonArguments common{.engines = "all"};
  StrideArguments stride;
  std::string deltas = "10m";
  std::string keys = "1m";
  std::string distribution = "uniform";
  std::string batch;
  uint64_t seed = 1;
};

void add_accumulate(CLI::App* command, AccumulateArguments* accumulate);
Status run_accumulate_command(const AccumulateArguments& accumulate);

}  // namespace stride::benchmark
