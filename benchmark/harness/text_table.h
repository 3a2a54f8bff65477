// Columns for the terminal.
#pragma once

#include <string>
#include <vector>

namespace stride::benchmark {

// The first column is aligned left, the others right.
class TextTable {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void add_rule() { rows_.push_back({}); }
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // an empty one is a rule
};

// Three significant digits: "0.0123", "4.56", "78.9", "1234".
std::string three_digits(double value);

}  // namespace stride::benchmark
