#include "benchmark/harness/command_registry.h"

#include <algorithm>

namespace stride::benchmark {
namespace {

// A local variable, because it is used while the variables of other files are initialised.
std::vector<RegisteredCommand>& registry() {
  static std::vector<RegisteredCommand> commands;
  return commands;
}

}  // namespace

std::vector<RegisteredCommand> registered_commands() {
  std::vector<RegisteredCommand> commands = registry();
  std::ranges::sort(commands, {}, &RegisteredCommand::order);
  return commands;
}

bool register_command(RegisteredCommand command) {
  registry().push_back(std::move(command));
  return true;
}

}  // namespace stride::benchmark
