// stride group of a table with columns: rows whose cells of some columns are equal are a group, of
// which it prints counts, and sums and extremes of other columns.
//
// Each group is kept in memory until all rows have been read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/cli/commands/output_arguments.h"
#include "adapters/cli/context.h"
#include "adapters/cli/exit_status.h"
#include "adapters/cli/text/key_codec.h"
#include "engine/database.h"
#include "engine/scan.h"
#include "engine/table.h"

namespace CLI {
class App;
}

namespace stride::cli {

struct GroupColumnsArguments {
  std::vector<std::string> by, sum_of, min_of, max_of;
  std::vector<std::string> where;
  std::optional<uint64_t> top;
  bool header = false, no_header = false;

  // The first option that only groups of columns have; empty: none is given.
  std::string given() const;
};

void add_group_columns(CLI::App* command, GroupColumnsArguments* arguments);

// count: it is asked for. Without it and without sums and extremes it is printed, too.
ExitStatus print_groups_of_columns(Context* context, const Snapshot& snapshot, const Table& table,
                                   const KeyForm& form, const ScanOptions& range,
                                   const GroupColumnsArguments& arguments, bool count,
                                   const OutputArguments& output);

}  // namespace stride::cli
