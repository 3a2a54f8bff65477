// The command `stride-bench dedup`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"

namespace stride::benchmark {

struct DedupArguments {
  CommonArguments common{.engines = "stride,unordered_set"};
  StrideArguments stride;
  std::string data = "random";
  std::string n;
  std::string words = "2";
  std::string duplication = "0.5";
  std::string values = "4";
  std::string form = "dense";
  std::string compressed;
  std::string load = "0.8";
  std::string bucket;
  uint32_t neighbours = 0;
  std::string batch;
  bool wide = false;
  bool sweep = false;
  uint64_t seed = 1;
};

void add_dedup(CLI::App* command, DedupArguments* dedup);
Status run_dedup_command(const DedupArguments& dedup);

}  // namespace stride::benchmark
