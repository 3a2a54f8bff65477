// The cells of a table's rows by the names of their columns, and how two cells compare.
//
//   TableCells cells(table, form);
//   NamedColumn city;
//   STRIDE_CLI_TRY(cells.find("--by", "city", &city));      // a column of the value or of the key
//   while (...) {
//     STRIDE_CLI_TRY(cells.read(key, value));
//     if (!cells.is_null(city)) use(cells[city]);
//   }
//
// Numbers, dates and times compare as such, false is less than true, and texts, bytes and uuids
// compare byte by byte. NaN equals itself and is larger than every number, and -0 equals 0, so that
// all cells have one order. Vectors compare by the first elements that differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/text/key_codec.h"
#include "engine/table.h"
#include "storage/column.h"
#include "storage/key_format.h"
#include "storage/row_format.h"
#include "storage/schema.h"

namespace stride::cli {

// Negative: a is less than b; 0: they are equal. Precondition: both are cells of the type.
using CompareCells = int (*)(Bytes a, Bytes b);
CompareCells comparison_of(const Field& field);
// Appends the cell so that equal cells have equal bytes: NaN and -0 have several.
void append_same_bytes(const Field& field, Bytes cell, std::string* to);

struct NamedColumn {
  Field field;
  size_t column = 0;  // among those of the value, or of the key
  bool of_key = false;
};

// Reads one row after the other, and allocates nothing for a row but what a key of several texts
// needs.
class TableCells {
 public:
  TableCells(const Table& table, const KeyForm& form);
  TableCells(const TableCells&) = delete;
  TableCells& operator=(const TableCells&) = delete;

  // As rows are printed: the key's first.
  const std::vector<std::string>& names() const { return names_; }
  // usage: the table has no columns.
  ExitStatus check_columns(const std::string& option) const;
  // usage: there is no such column. option: what names it, for the message.
  ExitStatus find(const std::string& option, const std::string& name, NamedColumn* column);
  // damaged: the key or the value is none of the table's columns. What follows is of this row.
  ExitStatus read(Bytes key, Bytes value);
  bool is_null(const NamedColumn& at) const { return !at.of_key && row_.is_null(at.column); }
  Bytes operator[](const NamedColumn& at) const {
    return at.of_key ? key_[at.column] : row_[at.column];
  }

 private:
  std::string table_;
  KeyForm form_;
  Schema schema_;
  RowReader row_;
  KeyReader key_;
  std::vector<std::string> names_;
  bool reads_key_ = false;
};

}  // namespace stride::cli
