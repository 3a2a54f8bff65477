// The results of the planner workload, for the terminal and as a plot.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// A line for each data set, and below them the means.
std::string planner_tables(const std::vector<ResultRow>& rows);

// The rows as plot_svg() takes them: a group for each data set.
std::vector<ResultRow> planner_plot_rows(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
