// What stands in the cells of a report's table: a number of a row, or - where there is no row.
#pragma once

#include <string>

#include "benchmark/harness/report.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {

// Millions of records a second.
inline std::string rate_cell(const ResultRow* row) {
  return row ? three_digits(row->records_per_second() / 1e6) : "-";
}

// How many times the rate of the other row.
inline std::string ratio_cell(const ResultRow* row, const ResultRow* other) {
  if (!row || !other || other->records_per_second() <= 0) return "-";
  return three_digits(row->records_per_second() / other->records_per_second()) + "x";
}

}  // namespace stride::benchmark
