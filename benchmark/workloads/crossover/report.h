// The results of the crossover workload for the terminal and for a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// Nanoseconds a query and M queries a second by the size of the batch, with the fastest way, and
// whether automatic was within a tenth of it; then where the ways cross.
std::string crossover_tables(const std::vector<ResultRow>& rows);

// The smallest measured batch from which on, with all larger ones, the configuration `faster` is
// faster than `slower`; 0: none.
uint64_t crossing(const std::vector<ResultRow>& rows, const std::string& faster,
                  const std::string& slower);

// The rows as plot_svg() takes them: a group for each size of batch.
std::vector<ResultRow> crossover_plot_rows(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
