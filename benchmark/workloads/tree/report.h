// The results of the tree workload, for the terminal and as a plot.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// A line for each set of keys, engine and configuration: rates, memory, and the share of the limit
// that find reaches; then the latency of small calls, and the limits themselves.
std::string tree_tables(const std::vector<ResultRow>& rows);

// The rows as plot_svg() takes them: a group for each set of keys and configuration, or, with one
// of these, for each phase; where there are latencies, these alone, with a group for each number of
// queries a call.
std::vector<ResultRow> tree_plot_rows(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
