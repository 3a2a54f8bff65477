// The subcommands of `stride`. Each registers itself in its file of commands/:
//
//   const bool group_registered = Subcommands::add(
//       220, "group", "Sums, counts and extremes, by the beginning of keys or by columns",
//       &add_group, &run_group);
//
// They stand in --help in ascending order of their numbers, of which the hundreds are a group:
//   100  rows of files: into a table, or beside what a table has
//   200  what a table has
//   300  copies of tables
//   400  the state of a database and of the machine
#pragma once

#include "adapters/cli/command_registry.h"
#include "adapters/cli/context.h"

namespace stride::cli {

using Subcommands = CommandRegistry<ExitStatus(Context*)>;

}  // namespace stride::cli
