// The commands of stride-bench. A workload registers its own in its command.cc, and the program
// offers what is registered.
//
//   const bool map_registered = register_command(
//       100, "map", "Weights mapping: T[R[i]] += S[i], with R in a table", &add_map, &run_map);
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "storage/status.h"

namespace CLI {
class App;
}

namespace stride::benchmark {

// A command with arguments of its own, which live as long as it does.
struct BoundCommand {
  std::function<void(CLI::App*)> add_options;
  std::function<Status()> run;  // with the arguments that were parsed
};

struct RegisteredCommand {
  int order;  // place in --help: a smaller number comes first
  const char* name;
  const char* summary;  // one line of --help
  std::function<BoundCommand()> bind;
};

// The commands of all workloads that are linked, in the order of --help.
std::vector<RegisteredCommand> registered_commands();

// Before main() alone. Always returns true, so that a variable can be initialised with it.
bool register_command(RegisteredCommand command);

template <class Arguments>
bool register_command(int order, const char* name, const char* summary,
                      void (*add_options)(CLI::App*, Arguments*), Status (*run)(const Arguments&)) {
  return register_command({order, name, summary, [=] {
                             auto arguments = std::make_shared<Arguments>();
                             return BoundCommand{
                                 [=](CLI::App* command) { add_options(command, arguments.get()); },
                                 [=] { return run(*arguments); }};
                           }});
}

}  // namespace stride::benchmark
