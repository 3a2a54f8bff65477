// Rows of a report, by what they have in common.
//
//   for (const RowGroup& group : groups_of(all_of(rows), data_name)) text += table_of(group);
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "benchmark/harness/report.h"

namespace stride::benchmark {

// All rows of one table, or of one line. Never empty where groups_of() made it.
using RowGroup = std::vector<const ResultRow*>;

inline RowGroup all_of(const std::vector<ResultRow>& rows) {
  RowGroup all;
  for (const ResultRow& row : rows) all.push_back(&row);
  return all;
}

// Groups of the rows of one name, in the order of their first appearance.
template <class Name>
std::vector<RowGroup> groups_of(const RowGroup& rows, const Name& name) {
  std::vector<RowGroup> groups;
  for (const ResultRow* row : rows) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const RowGroup& g) { return name(*g[0]) == name(*row); });
    if (group == groups.end()) group = groups.insert(groups.end(), RowGroup());
    group->push_back(row);
  }
  return groups;
}

// The first row of a phase; null: there is none.
inline const ResultRow* row_of_phase(const RowGroup& group, const std::string& phase) {
  auto row = std::find_if(group.begin(), group.end(),
                          [&](const ResultRow* r) { return r->phase == phase; });
  return row == group.end() ? nullptr : *row;
}

}  // namespace stride::benchmark
