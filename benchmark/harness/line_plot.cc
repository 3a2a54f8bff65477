#include "benchmark/harness/line_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "benchmark/harness/svg.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

using svg::number;
using svg::text_at;

constexpr double axis_left = 80, axis_right = 760, legend_top = 64, panel_height = 200,
                 panel_gap = 76;

using LineColors = std::map<std::string, std::string>;  // of each series' name

// An axis from 0 to a round number, and its steps: 1, 2 or 5 times a power of ten.
struct LineAxis {
  explicit LineAxis(double largest) {
    if (!(largest > 0)) largest = 1;
    const double decade = std::pow(10, std::floor(std::log10(largest / 4)));
    for (double times : {1.0, 2.0, 5.0, 10.0})
      if (step = times * decade; step * 5 >= largest) break;
    end = std::ceil(largest / step) * step;
  }
  double step = 1, end = 1;
};

std::string plain_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

class Panel {
 public:
  Panel(const LinePanel& panel, double y)
      : panel_(panel), y_(y), x_axis_(largest(panel, 0)), y_axis_(largest(panel, 1)) {}

  std::string draw(const LineColors& colors) const {
    std::string out = text_at(axis_left, y_ - 10, "font-weight=\"bold\"", panel_.title);
    const double bottom = y_ + panel_height;
    for (double v = 0; v <= y_axis_.end * 1.0001; v += y_axis_.step) {
      out += svg::line(axis_left, to_y(v), axis_right, to_y(v), v > 0 ? "#ececec" : "#b0b0b0");
      out += text_at(axis_left - 8, to_y(v) + 4, "text-anchor=\"end\"", plain_number(v));
    }
    for (double v = 0; v <= x_axis_.end * 1.0001; v += x_axis_.step)
      out += text_at(to_x(v), bottom + 16, "text-anchor=\"middle\"", plain_number(v));
    out += text_at((axis_left + axis_right) / 2, bottom + 34, "text-anchor=\"middle\"",
                   panel_.x_label);
    out += svg::upright_text(20, y_ + panel_height / 2, panel_.y_label);
    for (const LineSeries& series : panel_.series) out += draw_series(series, colors);
    return out;
  }

 private:
  static double largest(const LinePanel& panel, int coordinate) {
    double value = 0;
    for (const LineSeries& series : panel.series)
      for (const auto& [x, y] : series.points) value = std::max(value, coordinate == 0 ? x : y);
    return value;
  }
  double to_x(double x) const { return axis_left + (axis_right - axis_left) * x / x_axis_.end; }
  double to_y(double y) const { return y_ + panel_height * (1 - y / y_axis_.end); }

  std::string draw_series(const LineSeries& series, const LineColors& colors) const {
    const std::string& color = colors.at(series.name);
    std::string points, dots;
    for (const auto& [x, y] : series.points) {
      points += number(to_x(x)) + "," + number(to_y(y)) + " ";
      if (series.points.size() > 40) continue;
      dots += "<circle cx=\"" + number(to_x(x)) + "\" cy=\"" + number(to_y(y)) +
              "\" r=\"2.5\" fill=\"" + color + "\"><title>" +
              svg::escape(series.name + ": " + three_digits(y) + " at " + three_digits(x)) +
              "</title></circle>\n";
    }
    return "<polyline fill=\"none\" stroke-width=\"1.6\" stroke=\"" + color + "\" points=\"" +
           points + "\"><title>" + svg::escape(series.name) + "</title></polyline>\n" + dots;
  }

  const LinePanel& panel_;
  const double y_;
  const LineAxis x_axis_, y_axis_;
};

std::string draw_line_legend(const std::vector<std::string>& names, const LineColors& colors,
                             double* y) {
  std::string out;
  double x = axis_left;
  for (const std::string& name : names) {
    const double width = 34 + 7.5 * static_cast<double>(name.size());
    if (x > axis_left && x + width > axis_right) {
      x = axis_left;
      *y += 20;
    }
    out += svg::rectangle(x, *y - 9, 12, 12, colors.at(name), name) +
           text_at(x + 18, *y + 1, "", name);
    x += width;
  }
  return out;
}

}  // namespace

std::string line_plot_svg(const std::string& title, const std::string& subtitle,
                          const std::vector<LinePanel>& panels) {
  LineColors colors;
  std::vector<std::string> names;
  svg::EngineColors shades;
  for (const LinePanel& panel : panels)
    for (const LineSeries& series : panel.series)
      if (colors.try_emplace(series.name).second) {
        colors[series.name] = shades.next(series.engine);
        names.push_back(series.name);
      }
  double legend_y = legend_top;
  const std::string legend = draw_line_legend(names, colors, &legend_y);
  std::string parts;
  double y = legend_y + 48;
  for (const LinePanel& panel : panels) {
    parts += Panel(panel, y).draw(colors);
    y += panel_height + panel_gap;
  }
  const double width = std::max(axis_right, axis_left + 8.6 * static_cast<double>(title.size()));
  return svg::page(width + 20, y) +
         text_at(axis_left, 24, "font-size=\"15\" font-weight=\"bold\"", title) +
         text_at(axis_left, 44, "fill=\"#555\"", subtitle) + legend + parts + "</svg>\n";
}

}  // namespace stride::benchmark
