// stride group: sums, counts and extremes of the values of a table's rows.
#pragma once

#include <string>

#include "adapters/cli/context.h"
#include "adapters/cli/text/scan_bounds.h"

namespace stride::cli {

struct GroupArguments {
  std::string database, table;
  std::string type;
  uint32_t prefix_bytes = 0;
  bool count = false, sum = false, min = false, max = false;
  BoundArguments bounds;
  std::string format = "tsv";
  std::string key_type;
  unsigned threads = 0;
};

void add_group(CLI::App* command, GroupArguments* arguments);
Outcome run_group(Context* context, const GroupArguments& arguments);

}  // namespace stride::cli
