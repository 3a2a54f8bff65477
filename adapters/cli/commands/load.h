// What `stride load` is asked for.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/commands/row_arguments.h"

namespace stride::cli {

struct LoadArguments {
  std::string database, table;
  std::vector<std::string> files;
  RowArguments rows;
  std::string on_duplicate;  // empty: error into a new table, last into one that is there
  uint64_t commit_every = 0;
  bool resume = false;
  bool dry_run = false;
  uint64_t max_memory = 0;  // bytes; 0: chosen
  std::string address_bits;
  bool mask_host_bits = false;
  bool share_equal_values = false;
  std::string schema = "auto";  // auto, none, a file or a schema's text
  std::string expires;          // the column that says when a row ends
  std::string ttl;              // "90s", "15m", "24h", "7d"
  std::string numbers;          // empty: as the table is
  bool accumulate = false;
  bool count = false;  // each row adds 1; then accumulate, too
  bool replace = false;
  bool wrap = false;
};

}  // namespace stride::cli
