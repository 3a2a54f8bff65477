#include "benchmark/harness/text_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace stride::benchmark {

std::string TextTable::to_string() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  size_t total = 0;
  for (size_t width : widths) total += width + 2;
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string fill(widths[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + fill : "  " + fill + row[i];
    }
    if (row.empty()) line.assign(total > 2 ? total - 2 : 0, '-');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string three_digits(double value) {
  int decimals = 0;
  // What rounds up to the next power of ten counts as that.
  if (value > 0) {
    decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(value * 1.0005))), 0, 6);
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

}  // namespace stride::benchmark
