// The parts that plots are drawn of, as text of an SVG.
#pragma once

#include <map>
#include <string>

namespace stride::benchmark::svg {

std::string escape(const std::string& text);
// With one digit after the point.
std::string number(double value);
std::string text_at(double x, double y, const char* attributes, const std::string& text);
// `tip` is shown where a person points at it.
std::string rectangle(double x, double y, double width, double height, const std::string& color,
                      const std::string& tip);
std::string line(double x1, double y1, double x2, double y2, const char* color);
// A title from the bottom to the top, around that middle.
std::string upright_text(double x, double middle, const std::string& text);
// What comes before all parts: a white page. "</svg>\n" ends it.
std::string page(double width, double height);

// The colours of engines: StrideDB stands out in red, a peer's configurations are shades of one
// colour.
class EngineColors {
 public:
  // The next shade of that engine.
  std::string next(const std::string& engine);

 private:
  std::map<std::string, size_t> used_;  // shades of each engine
};

}  // namespace stride::benchmark::svg
