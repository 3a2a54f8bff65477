#include "benchmark/harness/svg.h"

#include <cstdio>
#include <vector>

namespace stride::benchmark::svg {
namespace {

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

}  // namespace

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

std::string line(double x1, double y1, double x2, double y2, const char* color) {
  return "<line x1=\"" + number(x1) + "\" x2=\"" + number(x2) + "\" y1=\"" + number(y1) +
         "\" y2=\"" + number(y2) + "\" stroke=\"" + color + "\"/>\n";
}

std::string upright_text(double x, double middle, const std::string& text) {
  return "<text transform=\"translate(" + number(x) + " " + number(middle) +
         ") rotate(-90)\" text-anchor=\"middle\">" + escape(text) + "</text>\n";
}

std::string page(double width, double height) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
         number(width) + " " + number(height) + "\" width=\"" + number(width) + "\" height=\"" +
         number(height) +
         "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
}

std::string EngineColors::next(const std::string& engine) {
  const size_t shade = used_[engine]++;
  for (const Palette& palette : palettes())
    if (palette.engine == engine) return palette.shades[shade % palette.shades.size()];
  return "#b07aa1";
}

}  // namespace stride::benchmark::svg
