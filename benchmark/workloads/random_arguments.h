// The options that say which random records to make: --n, --value-bytes and --seed.
#pragma once

#include <string>

#include "benchmark/datasets/random_records.h"
#include "storage/status.h"

namespace CLI {
class App;
}

namespace stride::benchmark {

struct RandomArguments {
  std::string n = "1m";
  std::string value_bytes = "44";
  uint64_t seed = 1;
};

void add_random(CLI::App* command, RandomArguments* random);

// invalid_argument: a number that is off. resource_exhausted: so many records, with what the
// workload keeps beside them, do not fit into this machine's memory.
Result<RandomRecordsOptions> parse_random(const RandomArguments& random);

// "10,000 keys of 8 bytes, values of 44 bytes, seed 1"
std::string random_title(const RandomRecordsOptions& options);

}  // namespace stride::benchmark
