#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/report_cells.h"
#include "benchmark/harness/row_groups.h"
#include "benchmark/harness/text_table.h"
#include "benchmark/workloads/map/workload.h"

namespace stride::benchmark {
namespace {

// How many calls the row's time covers.
double calls_of(const ResultRow& row) {
  return row.numbers.contains("calls") ? row.number_of("calls") : 1;
}

std::string milliseconds_cell(const ResultRow* row) {
  return row ? three_digits(row->seconds * 1e3 / calls_of(*row)) : "-";
}

std::string map_rates(const RowGroup& rows) {
  TextTable table;
  table.add({"M sources a second", "prepare", "map", "whole", "ms a map", "bytes a source",
             "prepare to loop", "map to loop", "whole to loop"});
  table.add_rule();
  std::vector<RowGroup> lines =
      groups_of(rows, [](const ResultRow& row) { return row.engine_name(); });
  RowGroup loop;
  for (const RowGroup& line : lines)
    if (line[0]->engine == "loop") loop = line;
  for (const RowGroup& line : lines) {
    bool ours = line[0]->engine == "stride";
    const ResultRow *prepare = row_of_phase(line, "prepare"), *map = row_of_phase(line, "map");
    const ResultRow* whole = row_of_phase(line, "whole");
    double bytes = line[0]->number_of("bytes_per_source");
    table.add({line[0]->engine_name(), rate_cell(prepare), rate_cell(map), rate_cell(whole),
               milliseconds_cell(map ? map : whole), bytes > 0 ? three_digits(bytes) : "-",
               ours ? ratio_cell(prepare, row_of_phase(loop, "prepare")) : "-",
               ours ? ratio_cell(map, row_of_phase(loop, "map")) : "-",
               ours ? ratio_cell(whole, row_of_phase(loop, "whole")) : "-"});
  }
  return table.to_string();
}

}  // namespace

std::string map_tables(const std::vector<ResultRow>& rows) {
  std::string text;
  for (const RowGroup& group :
       groups_of(all_of(rows), [](const ResultRow& r) { return r.texts.at("type"); })) {
    const ResultRow& any = *group[0];
    auto sources = static_cast<uint64_t>(static_cast<double>(any.records) / calls_of(any));
    text += any.texts.at("type") + ": " + with_commas(sources) + " sources (keys " +
            any.texts.at("keys") + "), " +
            with_commas(static_cast<uint64_t>(any.number_of("targets"))) + " targets\n" +
            map_rates(group) + "\n";
  }
  return text +
         "prepare: keys to targets, and what maps; map: T[R[i]] += S[i]; whole: both at once;\n"
         "loop: std::unordered_map, and a loop, on one thread\n";
}

}  // namespace stride::benchmark
