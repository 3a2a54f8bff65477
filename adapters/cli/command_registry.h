// The subcommands of `stride`. Each registers itself in its file of commands/, and the program
// offers what is registered.
//
//   const bool group_registered = register_command(
//       220, "group", "Sums, counts and extremes of values, by the beginning of keys", &add_group,
//       &run_group);
//
// Subcommands stand in --help in ascending order of their numbers, of which the hundreds are a
// group:
//   100  rows of files: into a table, or beside what a table has
//   200  what a table has
//   300  copies of tables
//   400  the state of a database and of the machine
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "adapters/cli/context.h"

namespace CLI {
class App;
}

namespace stride::cli {

// A subcommand with arguments of its own, which live as long as it does.
struct BoundCommand {
  std::function<void(CLI::App*)> add_options;
  std::function<ExitStatus(Context*)> run;  // with the arguments that were parsed
};

struct RegisteredCommand {
  int order;
  const char* name;
  const char* summary;  // one line of --help
  std::function<BoundCommand()> bind;
};

// All that are linked, in ascending order.
std::vector<RegisteredCommand> registered_commands();

// Before main() alone. Always returns true, so that a variable can be initialised with it.
bool register_command(RegisteredCommand command);

template <class Arguments>
bool register_command(int order, const char* name, const char* summary,
                      void (*add_options)(CLI::App*, Arguments*),
                      ExitStatus (*run)(Context*, const Arguments&)) {
  return register_command({order, name, summary, [=] {
                             auto arguments = std::make_shared<Arguments>();
                             return BoundCommand{
                                 [=](CLI::App* command) { add_options(command, arguments.get()); },
                                 [=](Context* context) { return run(context, *arguments); }};
                           }});
}

}  // namespace stride::cli
