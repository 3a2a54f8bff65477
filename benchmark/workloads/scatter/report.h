// The results of the scatter workload for the terminal and for pictures.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// For each type, width of targets and operation: rates of each way to do it, for each number of
// sources and targets and each distribution.
std::string scatter_tables(const std::vector<ResultRow>& rows);

// The rows as plot_svg() takes them: a group for each distribution (and what else differs).
std::vector<ResultRow> scatter_plot(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
