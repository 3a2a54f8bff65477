// StrideDB under the benchmark of accumulation.
#pragma once

#include <vector>

#include "benchmark/peers/accumulate_engine.h"

namespace stride::benchmark {

// defaults  default options, a transaction for each batch
std::vector<AccumulateConfiguration> stride_accumulate_configurations();

}  // namespace stride::benchmark
