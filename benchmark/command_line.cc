#include "benchmark/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "adapters/cli/text/similar_names.h"
#include "benchmark/harness/workload_commands.h"

namespace stride::benchmark {

namespace {

// The arguments without the program's name, the last one first, as CLI11 takes them. `help sts` is
// `sts --help`.
std::vector<std::string> reversed_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  std::ranges::reverse(arguments);
  return arguments;
}

// "no command 'scna': did you mean 'scan'?", or nothing where the arguments begin with a command.
std::string wrong_command(const std::vector<std::string>& reversed,
                          const std::vector<WorkloadCommands::Command>& commands) {
  if (reversed.empty() || reversed.back().starts_with('-')) return "";
  std::vector<std::string> names;
  for (const WorkloadCommands::Command& command : commands) names.push_back(command.name);
  if (std::ranges::find(names, reversed.back()) != names.end()) return "";
  return "no command " + in_quotes(reversed.back()) + ": " +
         did_you_mean(reversed.back(), names, "stride-bench help lists all commands");
}

}  // namespace

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
  std::vector<std::string> arguments = reversed_arguments(argc, argv);
  if (const std::string wrong = wrong_command(arguments, registered); !wrong.empty()) {
    std::cerr << "stride-bench: " << wrong << "\n";
    return 2;
  }
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Status status = chosen->run();
  if (status.ok()) return 0;
  std::cerr << "stride-bench: " << status.to_string() << "\n";
  return status.code() == StatusCode::invalid_argument ? 2 : 1;
}

}  // namespace stride::benchmark
