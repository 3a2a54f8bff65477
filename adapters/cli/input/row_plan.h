// How the rows of a file are read: the format, and which columns make key and value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/input/input_stream.h"
#include "adapters/cli/text/key_codec.h"
#include "storage/number.h"
#include "storage/schema.h"

namespace stride::cli {

enum class Format : uint8_t { tsv, csv, jsonl, raw, parquet, arrow };
std::string_view name_of(Format format);
// Column by column, not row by row: see arrow_rows.h.
inline bool is_columnar(Format format) {
  return format == Format::parquet || format == Format::arrow;
}

// automatic: as the first line of the file ends, and all others must.
enum class LineEnds : uint8_t { automatic, lf, crlf, any };

// What the options say, for all files alike.
struct RowOptions {
  Format format = Format::tsv;
  char delimiter = '\t';
  bool header = false;
  // What no option says is told by the first rows of each file (input/sniff.h).
  bool sniffs_header = false, sniffs_delimiter = false;
  LineEnds line_ends = LineEnds::automatic;
  Compression compression = Compression::automatic;
  KeyForm key_form;
  uint32_t key_width = 0;  // of the table's keys; 0: any
  bool allow_empty_key = false;
  // A column's name, or its number from 1, or several with commas between; empty: the first ones.
  std::string key;
  std::vector<std::string> key_names;     // what the table calls them, where `key` is empty
  std::vector<std::string> values;        // columns; none: all others (jsonl: the whole line)
  std::vector<std::string> added_fields;  // jsonl: that an object gets, and so may not have
  uint32_t raw_key_bytes = 0, raw_value_bytes = 0;  // of raw records; both 0: lengths before each
  // Values of a table of numbers are such numbers: as text, or in raw records as they are stored.
  NumberType numbers = NumberType::none;
  std::shared_ptr<const Schema> schema;  // values are rows of it; null: they are bytes
  bool takes_vectors = false;            // values may be rows of a schema, once the file is known
  bool schema_is_guess = false;          // from the first rows
  bool values_wanted = true;             // false: only keys, for lookups
  bool counts = false;      // the value is the number 1; `numbers` is set and no values wanted
  bool whole_rows = false;  // the key is the row without its line end; of tsv and csv
  uint64_t key_bytes_limit = max_key_bytes;
  uint64_t block_bytes = 4 << 20;
  uint64_t max_row_bytes = 64 << 20;
};

// The options for one file, names looked up in its header.
struct RowPlan {
  RowOptions options;
  bool crlf = false;  // resolved from the first line where line_ends is automatic
  std::vector<size_t> key_columns = {0};  // one, or as many as KeyForm::parts()
  bool value_is_rest = false;             // all columns but the key
  std::vector<size_t> value_columns;      // in this order, where not
  std::vector<std::string> columns;       // of the file, where it names them
  std::vector<Field> fields;              // the same with their types, of a file that has types
  size_t min_columns = 1;                 // that a row must have
  size_t exact_columns = 0;               // as many as the first row; 0: any number

  // columns: of the header, empty where there is none. usage: a column that is not there.
  static ExitStatus make(const RowOptions& options, const std::vector<std::string>& columns,
                         RowPlan* plan);
  // What the key's columns, or fields, are called; none where the file does not say.
  std::vector<std::string> key_names() const;
  bool is_key(size_t column) const;
  // Columns of the file that make the value, where it names its columns.
  std::vector<size_t> chosen_columns() const;
  // The schema has these very columns.
  void set_schema(std::shared_ptr<const Schema> schema);
  // The first row has one column, which is the key then, with empty values.
  void take_one_column();
};

// The columns that --key names, as many as the key form has where it names several.
std::vector<std::string> key_parts(const RowOptions& options);
// The columns of --value: in the table's order where they are all of its columns.
std::vector<std::string> values_in_order(const RowOptions& options);
// Tells the format by the file's name, whatever packs the file; tsv where the name says nothing.
std::string format_of_file(std::string_view path);
// One byte, or "\t". usage otherwise.
ExitStatus parse_delimiter(const std::string& text, char* delimiter);

}  // namespace stride::cli
