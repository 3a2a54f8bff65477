#include "benchmark/harness/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

constexpr double bar_width = 13, group_gap = 26, plot_height = 380;
constexpr double left = 70, top = 84, legend_line = 20;

// StrideDB stands out in red; a peer's configurations are shades of one colour.
struct Palette {
  const char* engine;
  std::vector<const char*> shades;
};
const std::vector<Palette>& palettes() {
  static const std::vector<Palette> all = {
      {"stride",
       {"#c8102e", "#e8707f", "#7a0019", "#f2a65a", "#8e5572", "#d9a3b8", "#4a2545", "#f7d08a",
        "#b5651d", "#a9a1c9"}},
      {"rocksdb", {"#0b3c6f", "#2f74b5", "#6ea6d8", "#b3d0ec"}},
      {"lmdb", {"#1d6b3a", "#43a266", "#96d1a8"}},
      {"vector", {"#8a8a8a"}},
      {"hash", {"#4d4d4d"}},
      {"limit", {"#d9c27e", "#bfa14a", "#e8dcb5", "#8f7a37"}},
      {"std::lower_bound", {"#8a8a8a", "#bdbdbd"}},
      {"std::unordered_map", {"#4d4d4d"}},
      {"std::unordered_set", {"#4d4d4d"}},
      {"loop", {"#4d4d4d"}},
  };
  return all;
}

struct Series {
  std::string name, color;
};

std::string escape(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string text_at(double x, double y, const char* attributes, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + attributes + ">" +
         escape(text) + "</text>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& color,
                      const std::string& tip) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
         "\" height=\"" + number(height) + "\" fill=\"" + color + "\"><title>" + escape(tip) +
         "</title></rect>\n";
}

std::vector<Series> find_series(const std::vector<ResultRow>& rows) {
  std::vector<Series> series;
  std::vector<std::pair<std::string, size_t>> used;  // shades of each engine
  for (const ResultRow& row : rows) {
    bool known = std::any_of(series.begin(), series.end(),
                             [&](const Series& s) { return s.name == row.engine_name(); });
    if (known) continue;
    auto count = std::find_if(used.begin(), used.end(),
                              [&](const auto& u) { return u.first == row.engine; });
    if (count == used.end()) count = used.insert(used.end(), {row.engine, 0});
    std::string color = "#b07aa1";
    for (const Palette& palette : palettes()) {
      if (palette.engine == row.engine)
        color = palette.shades[count->second % palette.shades.size()];
    }
    ++count->second;
    series.push_back({row.engine_name(), color});
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
      svg += "<line x1=\"" + number(left) + "\" x2=\"" + number(right) + "\" y1=\"" + number(y) +
             "\" y2=\"" + number(y) + "\" stroke=\"" + (step == 1 ? "#b0b0b0" : "#ececec") +
             "\"/>\n";
      if (step != 1) continue;
      char label[32];
      std::snprintf(label, sizeof(label), "%g", value);
      svg += text_at(left - 8, y + 4, "text-anchor=\"end\"", label);
    }
  }
  return svg + "<text transform=\"translate(20 " + number(top + plot_height / 2) +
         ") rotate(-90)\" text-anchor=\"middle\">" + escape(axis.label) + "</text>\n";
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
  std::string size = number(right + 20) + " " + number(height);
  std::string svg =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
      size + "\" width=\"" + number(right + 20) + "\" height=\"" + number(height) +
      "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
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
