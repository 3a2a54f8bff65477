#include "benchmark/workloads/planner/report.h"

#include <algorithm>
#include <cmath>

#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

const ResultRow* find(const std::vector<ResultRow>& rows, const std::string& data,
                      const std::string& configuration) {
  auto row = std::find_if(rows.begin(), rows.end(), [&](const ResultRow& r) {
    return r.phase == data && r.configuration == configuration;
  });
  return row == rows.end() ? nullptr : &*row;
}

std::string percent(double share) { return three_digits(100 * share); }

std::string regret_cell(const ResultRow* row) {
  return row ? percent(row->number_of("regret")) : "-";
}

std::string millions(const ResultRow* row) {
  return row ? three_digits(row->records_per_second() / 1e6) : "-";
}

struct Regrets {
  double sum = 0, worst = 0;
  int count = 0;
  void add(const ResultRow* row) {
    if (!row) return;
    sum += row->number_of("regret");
    worst = std::max(worst, row->number_of("regret"));
    ++count;
  }
};

}  // namespace

std::string planner_tables(const std::vector<ResultRow>& rows) {
  TextTable table;
  table.add({"data", "best M/s", "automatic M/s", "predicted", "regret %: automatic", "optimal",
             "learned", "flavors", "within 20 %", "to lower_bound", "bytes/key", "plan us",
             "% of build", "best tree", "automatic tree"});
  table.add_rule();
  Regrets automatic, optimal, learned, flavors;
  for (const ResultRow& best : rows) {
    if (best.configuration != "best") continue;
    const ResultRow* chosen = find(rows, best.phase, "automatic");
    const ResultRow* list = find(rows, best.phase, "list");
    if (!chosen || !list) continue;
    auto of = [&](const char* name) { return find(rows, best.phase, name); };
    automatic.add(chosen);
    optimal.add(of("optimal"));
    learned.add(of("learned"));
    flavors.add(of("flavors"));
    double plan = chosen->number_of("plan_seconds");
    table.add({best.phase, millions(&best), millions(chosen),
               three_digits(chosen->number_of("predicted_per_second") / 1e6), regret_cell(chosen),
               regret_cell(of("optimal")), regret_cell(of("learned")), regret_cell(of("flavors")),
               percent(list->number_of("within_20_percent")),
               three_digits(chosen->number_of("to_lower_bound")) + "x",
               three_digits(chosen->number_of("image_bytes") / chosen->number_of("keys")),
               three_digits(plan * 1e6), percent(plan / chosen->number_of("build_seconds")),
               best.text_of("tree"), chosen->text_of("tree")});
  }
  table.add_rule();
  auto line = [&](const char* name, auto value) {
    table.add({name, "", "", "", value(automatic), value(optimal), value(learned), value(flavors),
               "", "", "", "", "", "", ""});
  };
  line("mean", [](const Regrets& r) { return percent(r.sum / std::max(r.count, 1)); });
  line("worst", [](const Regrets& r) { return percent(r.worst); });
  return table.to_string();
}

std::vector<ResultRow> planner_plot_rows(const std::vector<ResultRow>& rows) {
  std::vector<ResultRow> plot;
  for (const ResultRow& row : rows) {
    if (row.configuration == "list" || row.configuration == "flavors") continue;
    plot.push_back(row);
  }
  return plot;
}

}  // namespace stride::benchmark
