// What a person sees of a YCSB run.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"
#include "benchmark/workloads/ycsb/workload.h"

namespace stride::benchmark {

// For each workload and number of threads two tables of the medians of all repeats: rates, space
// and what was written; and how long calls took.
std::string ycsb_tables(const std::vector<ResultRow>& rows);

// A line for each interval: workload, threads, store, repeat, seconds (of its end),
// operations_per_second, p99_us, max_us, directory_bytes.
std::string ycsb_series_csv(const std::vector<YcsbSeries>& series);

// Operations a second over time: a panel for each workload and number of threads, and in it a line
// for each store, of the first repeat.
std::string ycsb_series_svg(const std::string& title, const std::vector<YcsbSeries>& series);

}  // namespace stride::benchmark
