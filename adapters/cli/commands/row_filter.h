// Which rows of a table hold what --where asks for: COLUMN=VALUE, and !=, <, <=, > and >= in the
// place of =.
//
//   RowFilter filter;
//   STRIDE_CLI_TRY(RowFilter::make({"state=NY", "score>=1.5"}, &cells, &filter));
//   STRIDE_CLI_TRY(cells.read(key, value));
//   if (filter.holds(cells)) ...                            // all of them hold
//
// VALUE is text as files have it, and the cells compare as commands/table_cells.h says. A cell that
// is null equals the empty VALUE alone, is not equal to every other, and is neither less nor more
// than any.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/commands/table_cells.h"
#include "adapters/cli/exit_status.h"
#include "engine/scan.h"
#include "engine/table.h"

namespace CLI {
class App;
}

namespace stride::cli {

class RowFilter {
 public:
  // usage: a text is no comparison, or its column is not there, or its value is none of the
  // column's.
  static ExitStatus make(const std::vector<std::string>& conditions, TableCells* cells,
                         RowFilter* filter);

  bool empty() const { return conditions_.empty(); }
  // Narrows a scan that has no bounds to the keys among which rows can hold, as far as conditions
  // compare the first key column. table: whose columns the conditions are of.
  void narrow(const Table& table, ScanOptions* range) const;
  // It belongs to the row that was read last.
  bool holds(const TableCells& cells) const {
    for (const Condition& condition : conditions_)
      if (!condition.holds(cells)) return false;
    return true;
  }

 private:
  struct Condition {
    bool holds(const TableCells& cells) const;

    NamedColumn column;
    CompareCells compare = nullptr;
    bool less = false, equal = false, more = false;  // what holds
    bool is_empty = false;                           // VALUE
    // What an empty VALUE is compared with besides null: an empty text.
    bool has_value = true;
    std::string value;  // a cell
  };
  static void narrow(const Condition& condition, const Schema& schema, ScanOptions* range);
  static ExitStatus parse(const std::string& text, TableCells* cells, Condition* condition);

  std::vector<Condition> conditions_;
};

// --where
void add_where(CLI::App* command, std::vector<std::string>* conditions);

}  // namespace stride::cli
