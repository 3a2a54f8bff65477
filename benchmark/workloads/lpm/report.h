// The results of the longest-prefix match workload for the terminal and for a picture.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// For each table of prefixes: rates, what the index costs, how it compares with a binary search,
// updates, and the goals.
std::string lpm_tables(const std::vector<ResultRow>& rows);

// The rows as plot_svg() takes them: rates of matches, a group for each table and kind of address.
std::vector<ResultRow> lpm_plot_rows(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
