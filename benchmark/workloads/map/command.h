// The command `stride-bench map`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"

namespace stride::benchmark {

struct MapArguments {
  CommonArguments common{.engines = "stride,loop"};
  StrideArguments stride;
  std::string sources = "4m";
  std::string targets = "500k";
  std::string keys = "u64";
  std::string types = "f32";
  std::string modes = "fast,reproducible";
  std::string calls = "100";
  uint64_t seed = 1;
};

void add_map(CLI::App* command, MapArguments* map);
Status run_map_command(const MapArguments& map);

}  // namespace stride::benchmark
