// What several devices reach, beside one of them and beside the model.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// rows: of all rounds. A line for each operation.
std::string gpus_tables(const std::vector<ResultRow>& rows);
std::vector<ResultRow> gpus_plot_rows(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
