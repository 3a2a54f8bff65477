#include "benchmark/command_line.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <vector>

#include "benchmark/harness/workload_commands.h"

namespace stride::benchmark {

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("StrideDB and its peers side by side", "stride-bench");
  app.require_subcommand(1);
  std::vector<WorkloadCommands::Bound> commands;
  const WorkloadCommands::Bound* chosen = nullptr;
  const std::vector<WorkloadCommands::Command> registered = WorkloadCommands::all();
  commands.reserve(registered.size());
  for (const WorkloadCommands::Command& command : registered) {
    WorkloadCommands::Bound* bound = &commands.emplace_back(command.bind());
    CLI::App* subcommand = app.add_subcommand(command.name, command.summary);
    bound->add_options(subcommand);
    subcommand->callback([bound, &chosen] { chosen = bound; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Status status = chosen->run();
  if (status.ok()) return 0;
  std::cerr << "stride-bench: " << status.to_string() << "\n";
  return status.code() == StatusCode::invalid_argument ? 2 : 1;
}

}  // namespace stride::benchmark
