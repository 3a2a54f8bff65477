// The results of the dedup workload for the terminal and for pictures.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// For each kind and length of vectors: rates, what a vector costs, and how they compare with the
// machine's random accesses and with std::unordered_set.
std::string dedup_tables(const std::vector<ResultRow>& rows);
// For each thing that was changed: rates and bytes, and their ratios to the ordinary choice.
std::string dedup_sweep_tables(const std::vector<ResultRow>& rows);

// The rows as plot_svg() takes them: rates, a group for each phase, load and kind of vectors, and,
// as millions of records a second, bytes a vector, a group for each load and kind.
std::vector<ResultRow> dedup_rate_plot(const std::vector<ResultRow>& rows);
std::vector<ResultRow> dedup_bytes_plot(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
