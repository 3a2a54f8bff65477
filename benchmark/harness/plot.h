// A picture of a comparison: one group of bars for each phase, on a logarithmic scale.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// What the bars show, of which rows have millions a second.
struct PlotAxis {
  std::string label = "M records a second (logarithmic)";
  std::string unit = "M/s";
};

// A self-contained SVG.
std::string plot_svg(const std::string& title, const std::vector<ResultRow>& rows,
                     const PlotAxis& axis = {});

}  // namespace stride::benchmark
