// The command `stride-bench scatter`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"

namespace stride::benchmark {

struct ScatterArguments {
  CommonArguments common;
  StrideArguments stride;
  std::string sources = "10m";
  std::string targets = "10k,1m";
  std::string distribution = "uniform,sorted,zipf:1.1";
  std::string type = "f32";
  std::string index = "u32";
  std::string operation = "add";
  std::string mode = "fast";
  std::string method = "automatic";
  std::string memory = "device";
  bool prepared = false;
  uint64_t seed = 1;
};

void add_scatter(CLI::App* command, ScatterArguments* scatter);
Status run_scatter_command(const ScatterArguments& scatter);

}  // namespace stride::benchmark
