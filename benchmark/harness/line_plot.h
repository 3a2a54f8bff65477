// A picture of lines: one panel below the other, each with its own axes, and one legend.
//
//   std::string svg = line_plot_svg("Over time", {{.title = "A", .series = {{"stride:defaults",
//                                                  "stride", {{0, 10}, {1, 12}}}}}});
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stride::benchmark {

struct LineSeries {
  std::string name;
  std::string engine;                             // decides the colour
  std::vector<std::pair<double, double>> points;  // x and y, in the order of x
};

struct LinePanel {
  std::string title, x_label, y_label;
  std::vector<LineSeries> series;
};

// A self-contained SVG. Series of one name have one colour in all panels. Axes begin at 0.
std::string line_plot_svg(const std::string& title, const std::string& subtitle,
                          const std::vector<LinePanel>& panels);

}  // namespace stride::benchmark
