#include "benchmark/workloads/crossover/report.h"

#include <algorithm>
#include <map>
#include <set>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

constexpr const char* all_ways[] = {"single", "host", "cuda", "automatic"};
constexpr double good_share = 0.9;

uint64_t batch_of(const ResultRow& row) { return static_cast<uint64_t>(row.numbers.at("batch")); }

// Rates by batch and way; a way without rows is in none of them.
class Curve {
 public:
  explicit Curve(const std::vector<ResultRow>& rows) {
    for (const ResultRow& row : rows) {
      rates_[batch_of(row)][row.configuration] = row.records_per_second();
      ways_.insert(row.configuration);
    }
  }
  bool has(const std::string& way) const { return ways_.contains(way); }
  std::vector<std::string> ways() const {
    std::vector<std::string> ways;
    std::ranges::copy_if(all_ways, std::back_inserter(ways), [&](auto way) { return has(way); });
    return ways;
  }
  const std::map<uint64_t, std::map<std::string, double>>& rates() const { return rates_; }

 private:
  std::map<uint64_t, std::map<std::string, double>> rates_;
  std::set<std::string> ways_;
};

using Rates = std::map<std::string, double>;

std::string fastest(const Rates& rates) {
  return std::max_element(rates.begin(), rates.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// "yes", or how much of the best rate it reached.
std::string verdict(const Rates& rates) {
  double share = rates.at("automatic") / rates.at(fastest(rates));
  return share >= good_share ? "yes" : "no, " + three_digits(100 * share) + " %";
}

// cell(rate): a cell of the table.
template <class Cell>
std::string table_of(const Curve& curve, const std::string& unit, const Cell& cell) {
  TextTable table;
  std::vector<std::string> header = {unit + ", queries a call"};
  for (const std::string& way : curve.ways()) header.push_back(way);
  header.push_back("fastest");
  if (curve.has("automatic")) header.push_back("automatic within 10 %");
  table.add(header);
  table.add_rule();
  for (const auto& [batch, rates] : curve.rates()) {
    std::vector<std::string> cells = {with_commas(batch)};
    for (const std::string& way : curve.ways()) cells.push_back(cell(rates.at(way)));
    cells.push_back(fastest(rates));
    if (curve.has("automatic")) cells.push_back(verdict(rates));
    table.add(cells);
  }
  return table.to_string();
}

std::string crossing_line(const std::vector<ResultRow>& rows, const std::string& faster,
                          const std::string& slower, const std::string& sentence) {
  uint64_t batch = crossing(rows, faster, slower);
  return sentence + (batch ? ": from " + with_commas(batch) + " queries on" : ": never here") +
         "\n";
}

std::string automatic_line(const Curve& curve) {
  auto good = std::count_if(curve.rates().begin(), curve.rates().end(),
                            [](const auto& line) { return verdict(line.second) == "yes"; });
  return "automatic is within 10 % of the best at " + std::to_string(good) + " of " +
         std::to_string(curve.rates().size()) + " sizes\n";
}

}  // namespace

uint64_t crossing(const std::vector<ResultRow>& rows, const std::string& faster,
                  const std::string& slower) {
  Curve curve(rows);
  if (!curve.has(faster) || !curve.has(slower)) return 0;
  uint64_t from = 0;
  for (auto line = curve.rates().rbegin(); line != curve.rates().rend(); ++line) {
    if (line->second.at(faster) <= line->second.at(slower)) break;
    from = line->first;
  }
  return from;
}

std::string crossover_tables(const std::vector<ResultRow>& rows) {
  Curve curve(rows);
  std::string text =
      table_of(curve, "ns a query", [](double rate) { return three_digits(1e9 / rate); });
  text += "\n" + table_of(curve, "M queries a second",
                          [](double rate) { return three_digits(rate / 1e6); });
  text += "\n" + crossing_line(rows, "host", "single", "a batch beats a loop of single gets");
  if (!curve.has("cuda")) return text;
  return text + crossing_line(rows, "cuda", "host", "the device beats the host") +
         automatic_line(curve);
}

std::vector<ResultRow> crossover_plot_rows(const std::vector<ResultRow>& rows) {
  std::vector<ResultRow> plot = rows;
  for (ResultRow& row : plot) row.phase = batch_name(batch_of(row)) + " a call";
  return plot;
}

}  // namespace stride::benchmark
