// The rows of a table with the largest cells of a column, as many as are asked for.
//
//   TopRows top(10, column, /*smallest=*/false);
//   while (...) top.add(cells, key, value);        // in the order of the keys
//   for (const TopRows::Row& row : top.sorted()) ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/cli/commands/table_cells.h"

namespace stride::cli {

// Keeps no more rows than it hands out. A row whose cell is null is none of them; of equal cells
// the smaller key comes first.
class TopRows {
 public:
  struct Row {
    std::string cell, key, value;
  };

  TopRows(uint64_t rows, NamedColumn column, bool smallest)
      : most_(rows),
        column_(std::move(column)),
        compare_(comparison_of(column_.field)),
        smallest_(smallest) {}

  // The row that was read last.
  void add(const TableCells& cells, Bytes key, Bytes value);
  // Best first. Nothing may be added afterwards.
  const std::vector<Row>& sorted();

 private:
  // How a cell of this key stands to a kept row: whether it comes before.
  bool is_before(Bytes cell, Bytes key, const Row& row) const {
    const int c = compare_(cell, as_bytes(row.cell));
    return c == 0 ? compare(key, as_bytes(row.key)) < 0 : (c < 0) == smallest_;
  }
  auto before() const {
    return [this](const Row& a, const Row& b) {
      return is_before(as_bytes(a.cell), as_bytes(a.key), b);
    };
  }

  uint64_t most_;
  NamedColumn column_;
  CompareCells compare_;
  bool smallest_;
  std::vector<Row> heap_;  // the row that the next better one drives out is at its top
};

}  // namespace stride::cli
