// stride dedup: the rows of files that did not come before.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/context.h"

namespace stride::cli {

struct DedupArguments {
  std::vector<std::string> files;
  RowArguments rows;               // without a key: whole rows
  std::vector<std::string> table;  // database and table that keep what was seen; empty: memory does
  uint64_t commit_every = 0;
  bool count = false;
};

void add_dedup(CLI::App* command, DedupArguments* arguments);
Outcome run_dedup(Context* context, const DedupArguments& arguments);

}  // namespace stride::cli
