// `stride-bench planner`.
#pragma once

#include <string>

#include "benchmark/harness/common_arguments.h"

namespace stride::benchmark {

struct PlannerArguments {
  CommonArguments common;
  std::string data = "words,urls,ipv6,kmers,clustered,zipf_gaps,timestamps";
  std::string keys = "1m";
  std::string queries;
  std::string order = "random";
  std::string backend = "auto";
  uint64_t seed = 1;
  uint32_t trees = 0;
  bool no_flavors = false;
  std::string training, access_costs;
};

void add_planner(CLI::App* command, PlannerArguments* planner);
Status run_planner_command(const PlannerArguments& planner);

}  // namespace stride::benchmark
