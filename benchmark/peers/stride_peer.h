// StrideDB under the interface of the benchmark.
#pragma once

#include <vector>

#include "benchmark/harness/engine_under_test.h"

namespace stride::benchmark {

// defaults  default options; a flow puts slices of up to 65,536 records into its own transaction
std::vector<EngineConfiguration> stride_configurations();

}  // namespace stride::benchmark
