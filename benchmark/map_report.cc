#include <algorithm>

#include "benchmark/arguments.h"
#include "benchmark/map_workload.h"
#include "benchmark/text_table.h"

namespace stride::benchmark {
namespace {

using Group = std::vector<const ResultRow*>;

template <class Name>
std::vector<Group> groups_of(const Group& rows, const Name& name) {
  std::vector<Group> groups;
  for (const ResultRow* row : rows) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return name(*g[0]) == name(*row); });
    if (group == groups.end()) group = groups.insert(groups.end(), Group());
    group->push_back(row);
  }
  return groups;
}

const ResultRow* find(const Group& group, const std::string& phase) {
  auto row = std::find_if(group.begin(), group.end(),
                          [&](const ResultRow* r) { return r->phase == phase; });
  return row == group.end() ? nullptr : *row;
}

double number_of(const ResultRow& row, const std::string& name, double otherwise) {
  auto found = row.numbers.find(name);
  return found == row.numbers.end() ? otherwise : found->second;
}

std::string rate_cell(const ResultRow* row) {
  return row ? three_digits(row->records_per_second() / 1e6) : "-";
}

std::string milliseconds_cell(const ResultRow* row) {
  return row ? three_digits(row->seconds * 1e3 / number_of(*row, "calls", 1)) : "-";
}

std::string ratio_cell(const ResultRow* row, const ResultRow* loop) {
  if (!row || !loop || loop->records_per_second() <= 0) return "-";
  return three_digits(row->records_per_second() / loop->records_per_second()) + "x";
}

std::string rates(const Group& rows) {
  TextTable table;
  table.add({"M sources a second", "prepare", "map", "whole", "ms a map", "bytes a source",
             "prepare to loop", "map to loop", "whole to loop"});
  table.add_rule();
  std::vector<Group> lines =
      groups_of(rows, [](const ResultRow& row) { return row.engine_name(); });
  Group loop;
  for (const Group& line : lines)
    if (line[0]->engine == "loop") loop = line;
  for (const Group& line : lines) {
    bool ours = line[0]->engine == "stride";
    const ResultRow *prepare = find(line, "prepare"), *map = find(line, "map");
    const ResultRow* whole = find(line, "whole");
    double bytes = number_of(*line[0], "bytes_per_source", 0);
    table.add({line[0]->engine_name(), rate_cell(prepare), rate_cell(map), rate_cell(whole),
               milliseconds_cell(map ? map : whole), bytes > 0 ? three_digits(bytes) : "-",
               ours ? ratio_cell(prepare, find(loop, "prepare")) : "-",
               ours ? ratio_cell(map, find(loop, "map")) : "-",
               ours ? ratio_cell(whole, find(loop, "whole")) : "-"});
  }
  return table.to_string();
}

}  // namespace

std::string map_tables(const std::vector<ResultRow>& rows) {
  Group all;
  for (const ResultRow& row : rows) all.push_back(&row);
  std::string text;
  for (const Group& group : groups_of(all, [](const ResultRow& r) { return r.texts.at("type"); })) {
    const ResultRow& any = *group[0];
    auto sources =
        static_cast<uint64_t>(static_cast<double>(any.records) / number_of(any, "calls", 1));
    text += any.texts.at("type") + ": " + with_commas(sources) + " sources (keys " +
            any.texts.at("keys") + "), " +
            with_commas(static_cast<uint64_t>(number_of(any, "targets", 0))) + " targets\n" +
            rates(group) + "\n";
  }
  return text +
         "prepare: keys to targets, and what maps; map: T[R[i]] += S[i]; whole: both at once;\n"
         "loop: std::unordered_map, and a loop, on one thread\n";
}

}  // namespace stride::benchmark
