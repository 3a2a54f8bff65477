#include "benchmark/harness/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "benchmark/harness/svg.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

using svg::line;
using svg::number;
using svg::page;
using svg::rectangle;
using svg::text_at;
using svg::upright_text;

constexpr double bar_width = 13, group_gap = 26, plot_height = 380;
constexpr double left = 70, top = 84, legend_line = 20;

struct Series {
  std::string name, color;
};

std::vector<Series> find_series(const std::vector<ResultRow>& rows) {
  std::vector<Series> series;
  svg::EngineColors colors;
  for (const ResultRow& row : rows) {
    bool known = std::any_of(series.begin(), series.end(),
                             [&](const Series& s) { return s.name == row.engine_name(); });
    if (!known) series.push_back({row.engine_name(), colors.next(row.engine)});
  }
  return series;
}

std::vector<std::string> find_phases(const std::vector<ResultRow>& rows) {
  std::vector<std::string> phases;
  for (const ResultRow& row : rows) {
    if (row.phase == "open" || row.records_per_second() <= 0) continue;
    if (std::find(phases.begin(), phases.end(), row.phase) == phases.end()) {
      phases.push_back(row.phase);
    }
  }
  return phases;
}

// Decades of M records a second around all rates.
struct Scale {
  int low = -1, high = 1;
  double y(double millions) const {
    double share = (std::log10(millions) - low) / (high - low);
    return top + plot_height * (1 - std::clamp(share, 0.0, 1.0));
  }
};

Scale find_scale(const std::vector<ResultRow>& rows) {
  double least = 1e300, most = 0;
  for (const ResultRow& row : rows) {
    double millions = row.records_per_second() / 1e6;
    if (row.phase == "open" || millions <= 0) continue;
    least = std::min(least, millions);
    most = std::max(most, millions);
  }
  Scale scale;
  if (most <= 0) return scale;
  // A bar for the least rate is to be seen, too.
  scale.low = static_cast<int>(std::floor(std::log10(least * 0.8)));
  scale.high = std::max(scale.low + 1, static_cast<int>(std::ceil(std::log10(most * 1.02))));
  return scale;
}

std::string draw_axis(const Scale& scale, const PlotAxis& axis, double right) {
  std::string svg;
  for (int decade = scale.low; decade <= scale.high; ++decade) {
    for (int step = 1; step < 10; ++step) {
      double value = step * std::pow(10, decade), y = scale.y(value);
      if (step > 1 && decade == scale.high) break;
      svg += line(left, y, right, y, step == 1 ? "#b0b0b0" : "#ececec");
      if (step != 1) continue;
      char label[32];
      std::snprintf(label, sizeof(label), "%g", value);
      svg += text_at(left - 8, y + 4, "text-anchor=\"end\"", label);
    }
  }
  return svg + upright_text(20, top + plot_height / 2, axis.label);
}

std::string draw_group(const std::vector<ResultRow>& rows, const std::string& phase,
                       const std::vector<Series>& series, const Scale& scale, const PlotAxis& axis,
                       double x) {
  std::string svg;
  for (size_t i = 0; i < series.size(); ++i) {
    for (const ResultRow& row : rows) {
      if (row.phase != phase || row.engine_name() != series[i].name) continue;
      double millions = row.records_per_second() / 1e6;
      if (millions <= 0) continue;
      double bar_x = x + bar_width * static_cast<double>(i), y = scale.y(millions);
      svg += rectangle(bar_x, y, bar_width - 1.5, top + plot_height - y, series[i].color,
                       series[i].name + ", " + phase_title(phase) + ": " + three_digits(millions) +
                           " " + axis.unit);
      svg += "<text transform=\"translate(" + number(bar_x + bar_width / 2 + 2) + " " +
             number(y - 4) + ") rotate(-90)\" font-size=\"9\" fill=\"#444\">" +
             three_digits(millions) + "</text>\n";
    }
  }
  double middle = x + bar_width * static_cast<double>(series.size()) / 2;
  return svg +
         text_at(middle, top + plot_height + 20, "text-anchor=\"middle\"", phase_title(phase));
}

std::string draw_legend(const std::vector<Series>& series, double right, double* height) {
  std::string svg;
  double x = left, y = top + plot_height + 48;
  for (const Series& s : series) {
    double width = 30 + 7.5 * static_cast<double>(s.name.size());
    if (x > left && x + width > right) {
      x = left;
      y += legend_line;
    }
    svg += rectangle(x, y - 10, 12, 12, s.color, s.name) + text_at(x + 18, y, "", s.name);
    x += width;
  }
  *height = y + 20;
  return svg;
}

}  // namespace

std::string plot_svg(const std::string& title, const std::vector<ResultRow>& rows,
                     const PlotAxis& axis) {
  std::vector<Series> series = find_series(rows);
  std::vector<std::string> phases = find_phases(rows);
  Scale scale = find_scale(rows);
  double group_width = bar_width * static_cast<double>(series.size()) + group_gap;
  // Room for the titles below the groups.
  for (const std::string& phase : phases) {
    double title_width = 6.5 * static_cast<double>(phase_title(phase).size()) + 12;
    group_width = std::max({group_width, 90.0, title_width});
  }
  double right = std::max({left + group_width * static_cast<double>(phases.size()), 640.0,
                           left + 8.6 * static_cast<double>(title.size())});
  double height = 0;
  std::string legend = draw_legend(series, right, &height);
  std::string svg = page(right + 20, height);
  svg += text_at(left, 24, "font-size=\"15\" font-weight=\"bold\"", title);
  if (!rows.empty()) svg += text_at(left, 44, "fill=\"#555\"", rows[0].machine);
  svg += draw_axis(scale, axis, right);
  for (size_t i = 0; i < phases.size(); ++i) {
    double x = left + group_gap / 2 + group_width * static_cast<double>(i);
    svg += draw_group(rows, phases[i], series, scale, axis, x);
  }
  return svg + legend + "</svg>\n";
}

}  // namespace stride::benchmark
