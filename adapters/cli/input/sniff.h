// What the first rows of a file tell that no option says: what lies between columns, and whether
// the first row names them.
#pragma once

#include <string_view>

#include "adapters/cli/input/row_plan.h"

namespace stride::cli {

// A look at so many bytes of a file is enough, if there are two rows in them.
inline constexpr size_t sniffed_bytes = 64 << 10;

struct Sniffed {
  char delimiter;
  bool header;
};

bool has_two_rows(std::string_view sample, const RowOptions& options);

// sample: the first bytes of a file in tsv or csv, without the mark of UTF-8; whole: it has no
// more.
//
// Another delimiter than the one that the options have is taken in csv alone, where rows have one
// column with that, and as many as each other with a semicolon, a tab or a bar. The first row is a
// header where --key or --value names a column, or where it has every column of the table; where
// there is no table yet, if it is no key and the second row is, or if its cells differ, are neither
// empty nor a number, a date or a boolean, and all other cells of some column are.
Sniffed sniff(std::string_view sample, bool whole, const RowOptions& options);

}  // namespace stride::cli
