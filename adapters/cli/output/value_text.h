// How a table's values are written: bytes as they are, numbers, or the columns of its schema.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/output/output.h"
#include "engine/table.h"
#include "storage/column.h"
#include "storage/row_format.h"

namespace stride::cli {

// Those of a table's columns that --columns names; all where it names none. usage: there is no such
// column, or the table has no schema.
ExitStatus find_columns(const Table& table, const std::vector<std::string>& names,
                        std::vector<size_t>* columns);

// One value after the other. A copy has memory of its own.
class ValueText {
 public:
  // columns: of find_columns(). value_name: of the value of a table without a schema.
  ValueText(const Table& table, std::vector<size_t> columns, std::string value_name = "value");
  ValueText(const ValueText& other);
  ValueText& operator=(const ValueText&) = delete;

  bool has_columns() const { return schema_.has_values(); }
  const std::vector<std::string>& names() const { return names_; }
  // Bytes, or a number: until the next call. Precondition: there are no columns.
  std::string_view of(Bytes value);
  // Fields with delimiters between; quoted: in quotes where they need them. found false: as many
  // empty ones.
  void append_fields(Bytes value, bool found, char delimiter, bool quoted, TextBuffer* out);
  // Members of a JSON object, without the braces; found false: nulls.
  void append_members(Bytes value, bool found, TextBuffer* out);
  // A member of that name: the value, or an object of its columns; found false: null.
  void append_member(std::string_view name, Bytes value, bool found, TextBuffer* out);
  // Whether every value so far was a row of the schema. Those that were not have empty fields.
  bool ok() const { return !broken_; }

 private:
  bool read(Bytes value, bool found);

  NumberType numbers_;
  Schema schema_;
  std::vector<size_t> columns_;
  std::vector<std::string> names_, json_names_;
  std::optional<RowReader> row_;
  bool broken_ = false;
  TextBuffer text_;
};

// The names as a header line, without the line end.
void append_names(const std::vector<std::string>& names, char delimiter, bool quoted,
                  TextBuffer* out);
// A member's name with quotes and colon, what is special in it escaped.
void append_json_name(std::string_view name, TextBuffer* out);
// "value":"..." or "value_hex":"..."
void append_json_member(std::string_view name, std::string_view text, TextBuffer* out);
// A field, in quotes where it needs them.
void append_csv_field(std::string_view text, char delimiter, TextBuffer* out);

}  // namespace stride::cli
