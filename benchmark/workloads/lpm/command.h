// The command `stride-bench lpm`.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/common_arguments.h"

namespace stride::benchmark {

struct LpmArguments {
  CommonArguments common{.durability = "none"};
  StrideArguments stride;
  std::vector<std::string> prefixes = {
      "benchmark/data/prefixes_ipv4_country.tsv.zst", "benchmark/data/prefixes_ipv4_asn.tsv.zst",
      "benchmark/data/prefixes_ipv6_country.tsv.zst", "benchmark/data/prefixes_ipv6_asn.tsv.zst"};
  std::string addresses = "uniform,table";
  std::string queries = "10m";
  std::string update_rate = "100k";
  std::string update_batch = "1000";
  double update_seconds = 3;
  uint64_t seed = 1;
};

void add_lpm(CLI::App* command, LpmArguments* lpm);
Status run_lpm_command(const LpmArguments& lpm);

}  // namespace stride::benchmark
