// The commands of `stride` with their options, and what runs the one that is named.
//
//   CommandSet(&context).run({"count", "db", "users"});
//   CommandSet(&context, "db", true).run({"count", "users"});   // as in `stride shell db`
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "adapters/cli/context.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {

// What it returns, or the outcome that fits what it throws.
ExitStatus guarded(Context* context, const std::function<ExitStatus()>& work);

// For one command: its arguments stay as they were parsed.
class CommandSet {
 public:
  explicit CommandSet(Context* context);
  // The commands of a shell: those whose first argument is a database, without this argument, and
  // help, exit and quit. has_input: whether they may read the standard input.
  CommandSet(Context* context, const std::string& database, bool has_input);
  CommandSet(const CommandSet&) = delete;
  CommandSet& operator=(const CommandSet&) = delete;

  // arguments: without the program's name. All output is written when it returns.
  ExitStatus run(std::vector<std::string> arguments);
  // Whether exit or quit was run.
  bool left() const { return left_; }
  CLI::App* app() { return &app_; }

 private:
  bool begins_well(const std::string& argument);
  // Null: the shell does not have it.
  CLI::App* add(const Subcommands::Command& registered);
  void add_help_pages();
  void add_shell_words();
  ExitStatus parse(std::vector<std::string> arguments);
  ExitStatus check_input() const;

  Context& context_;
  CLI::App app_;
  std::function<ExitStatus()> chosen_;
  std::string shell_;     // argument of completion
  std::string database_;  // of a shell
  bool in_shell_ = false, has_input_ = true, left_ = false;
};

}  // namespace stride::cli
