// A picture of a comparison: one group of bars for each phase, on a logarithmic scale.
#pragma once

#include <string>
#include <vector>

#include "benchmark/report.h"

namespace stride::benchmark {

// A self-contained SVG.
std::string plot_svg(const std::string& title, const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
