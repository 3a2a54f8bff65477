// Cells of a table with a schema as text, as files and output have them.
//
//   bool                  true, false
//   integers and floats   decimal; floats with as few digits as tell them apart
//   date                  2022-01-08
//   timestamp             2022-01-08 10:00:00.5; T between and Z behind are read, too
//   uuid                  12345678-9abc-def0-1234-56789abcdef0
//   string, bytes         as they are
//   vectors               [1,2.5,3]
//
// Dates and times outside of the years 0 to 9999 are the number that is stored.
#pragma once

#include <string>
#include <string_view>

#include "adapters/cli/output/output.h"
#include "storage/column.h"
#include "storage/row_format.h"
#include "storage/schema.h"

namespace stride::cli {

// Sets the cell that the text says; strings and bytes are kept as a view of it. False: it says
// none.
bool parse_cell(const Field& field, std::string_view text, size_t column, RowWriter* row);
// Writes one element that has a width: a number, a date, a uuid. False: the text is none.
bool parse_element(FieldType type, std::string_view text, std::byte* to);
// "'1.5' is no i64", with what is wrong with it.
std::string why_no_cell(const Field& field, std::string_view text);

// The text of a cell that is not null.
void append_cell(const Field& field, Bytes cell, TextBuffer* out);
// The same as JSON: numbers, booleans and arrays are such, all else is a string. NaN and
// infinities, which JSON has not, are strings. Precondition: the cell is no string that is not
// UTF-8.
void append_json_cell(const Field& field, Bytes cell, TextBuffer* out);
// Whether JSON has it as a number or a boolean.
bool is_json_number(const Field& field);
// Whether the float that the text says keeps all its digits.
bool keeps_digits(std::string_view text, double number);

// Finds the narrowest type that has all texts of a column.
class CellGuess {
 public:
  void add(std::string_view text);
  // A number or a boolean of JSON, or what else is there, which is no string.
  void add_json(std::string_view text, bool is_string);
  // Columns of text are strings that are never null, and all others may be; sparse: strings, too.
  Field field(std::string name, bool sparse) const;

 private:
  bool any_ = false, utf8_ = true, text_ = false;
  bool boolean_ = true, i64_ = true, u64_ = true, f64_ = true, date_ = true, timestamp_ = true;
};

}  // namespace stride::cli
