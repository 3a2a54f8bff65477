// Lines of delimited text whose values are rows of a schema, read in one pass: a cell is parsed
// where it begins, and its end is where that stops.
//
//   TypedLines lines(plan, &rows);
//   const char* next = lines.take(p, end, line);   // null: another one has to read it
//
// It takes lines as most files have them: as many columns as there should be, cells that can be
// read, and quotes only around whole cells. All others it leaves as they are, for DelimitedParser,
// which knows what is wrong with them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "adapters/cli/input/parsed_rows.h"

namespace stride::cli {

class TypedLines {
 public:
  // Whether the lines of this plan are such.
  static bool fit(const RowPlan& plan, const ParsedRows& rows);
  // Precondition: they are.
  TypedLines(const RowPlan& plan, ParsedRows* rows);

  // Takes the line that begins at `line` as a row, or refuses its key, and returns where the next
  // one begins. Null: nothing was taken, or refused. number: of the line, from the block's first
  // one.
  const char* take(const char* line, const char* end, uint64_t number);

 private:
  // Numbers come first.
  enum class Kind : uint8_t { number_key, integer, f64, key, other, skipped };
  // What becomes of a column of the file.
  struct Step {
    Kind kind = Kind::skipped;
    uint8_t width = 0;       // bytes of an integer
    bool is_signed = false;  // an integer
    uint32_t column = 0;     // of the schema's values, or of the key
    const Field* field = nullptr;
  };
  struct Cell {
    std::string_view text;
    bool in_quotes = false;
    const char* stop = nullptr;  // what is behind it
  };

  static Step step_of(const Field& field, size_t column);
  // A number in its plainest form, in the row that is made then. Returns what is behind it; null:
  // there is none.
  const char* take_number(const Step& step, const char* p);
  const char* take_decimal(const Step& step, bool negative, uint64_t number, const char* first,
                           const char* stop);
  // False: it does not end well before `end`, or is not for this parser.
  bool find_cell(const char* p, const char* end, Cell* cell) const;
  bool take_cell(const Step& step, const Cell& cell);

  const RowPlan& plan_;
  ParsedRows& rows_;
  char delimiter_, quote_;             // quote_: the delimiter where the format has none
  char line_end_;                      // the first byte of it
  std::vector<Step> steps_;            // of the file's columns
  std::vector<std::string_view> key_;  // the texts of its columns
};

}  // namespace stride::cli
