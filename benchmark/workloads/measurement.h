// What every command does once its arguments are understood: it measures, prints tables, and writes
// the files that were asked for.
//
//   return measure_and_show(lpm.common, {.title = "Longest-prefix match",
//                                        .run = [&](const Progress& progress, ResultRows* rows) {
//                                          return run_lpm(*options, progress, rows);
//                                        },
//                                        .tables = &lpm_tables,
//                                        .plots = {{.rows = &lpm_plot_rows}}});
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmark/harness/plot.h"
#include "benchmark/harness/progress.h"
#include "benchmark/harness/report.h"
#include "benchmark/workloads/common_arguments.h"

namespace stride::benchmark {

using ResultRows = std::vector<ResultRow>;
using MeasureRows = std::function<Status(const Progress&, ResultRows*)>;

// One picture of the results.
struct Plot {
  std::function<ResultRows(const ResultRows&)> rows;  // as plot_svg() takes them
  PlotAxis axis;
  std::string suffix;  // goes before the extension of the file that --plot names
  // Draws it in place of plot_svg(), given the title.
  std::function<std::string(const std::string&, const ResultRows&)> draw;
};

// Another file that was asked for; an empty path: it was not.
struct OutputFile {
  std::string path;
  std::function<std::string()> text;
};

struct Measurement {
  std::string title;  // above the tables and the plots
  MeasureRows run;
  std::function<std::string(const ResultRows&)> tables;
  std::vector<Plot> plots;
  std::vector<OutputFile> files;
};

// Checks first that the files can be written, because an error is better now than after minutes.
Status measure_and_show(const CommonArguments& common, const Measurement& measurement);

// The same for a workload that compares engines: shows the medians of all repeats. note: a line
// below the tables, made of all rows; empty: none. plots: besides the one of all phases.
Status measure_and_compare(const CommonArguments& common, const std::string& title,
                           const MeasureRows& run,
                           const std::function<std::string(const ResultRows&)>& note = {},
                           const std::vector<Plot>& plots = {});

}  // namespace stride::benchmark
