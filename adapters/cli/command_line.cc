#include "adapters/cli/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "adapters/cli/argument_errors.h"
#include "adapters/cli/bench_program.h"
#include "adapters/cli/context.h"
#include "adapters/cli/help_pages.h"
#include "adapters/cli/subcommands.h"
#include "engine/library_version.h"

namespace stride::cli {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 failure of the system, 2 wrong arguments, 3 bad rows, 4 not found,\n"
    "5 locked or not permitted, 6 damaged database, 7 disk or memory full, 8 not available here,\n"
    "130 interrupted, 141 the reader of the output has gone";

// The subcommands, and what runs the one that is chosen.
class Commands {
 public:
  explicit Commands(Context* context) : context_(*context) {
    app_.require_subcommand(1);
    app_.footer(std::string("stride help COMMAND says more.\n\n") + exit_codes);
    app_.set_version_flag("--version", version_text(), "Print the version and exit");
    for (const Subcommands::Command& command : Subcommands::all()) add(command);
    app_.add_subcommand("bench", "Measure StrideDB beside its peers; see stride bench --help");
    add_help_pages();
  }

  // arguments: without the program's name.
  ExitStatus run(std::vector<std::string> arguments) {
    if (!arguments.empty() && !begins_well(arguments[0]))
      return ExitStatus::usage(no_such_command(arguments[0], &app_));
    std::ranges::reverse(arguments);  // CLI11 takes the last one first
    try {
      app_.parse(arguments);
    } catch (const CLI::Success& help) {
      std::ostringstream out;
      app_.exit(help, out, out);
      return context_.out.write(out.str());
    } catch (const CLI::ParseError& error) {
      return ExitStatus::usage(argument_error(error, &app_));
    }
    ExitStatus outcome = chosen_();
    if (outcome.ok()) outcome = context_.out.flush();
    return outcome;
  }

 private:
  static std::string version_text() { return std::string("stride ") + version(); }

  // With a command, or with an option that stands alone.
  bool begins_well(const std::string& argument) {
    if (argument.starts_with('-')) return app_.get_option_no_throw(argument) != nullptr;
    return !app_.get_subcommands([&](CLI::App* c) { return c->get_name() == argument; }).empty();
  }

  void add(const Subcommands::Command& registered) {
    CLI::App* command = app_.add_subcommand(registered.name, registered.summary);
    Subcommands::Bound bound = registered.bind();
    bound.add_options(command);
    if (registered.json) command->add_flag("--json", context_.json, "Data as JSON");
    command->callback([this, bound] { chosen_ = [=, this] { return bound.run(&context_); }; });
  }

  void add_help_pages() {
    CLI::App* completion =
        app_.add_subcommand("completion", "Print a shell's completion of these commands");
    completion->add_option("SHELL", shell_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    completion->footer("Example:\n  source <(stride completion bash)");
    completion->callback([this] {
      chosen_ = [this] {
        return context_.out.write(shell_ == "bash"  ? bash_completion(&app_)
                                  : shell_ == "zsh" ? zsh_completion(&app_)
                                                    : fish_completion(&app_));
      };
    });
    CLI::App* man = app_.add_subcommand("man", "Print the manual page");
    man->footer(
        "Examples:\n  stride man | man -l -\n  stride man > /usr/local/share/man/man1/stride.1");
    man->callback([this] { chosen_ = [this] { return context_.out.write(manual_page(&app_)); }; });
    // What it does is done before the arguments are parsed.
    app_.add_subcommand("help", "Print what a command does, or which commands there are")
        ->add_option("COMMAND", shell_, "Name of the command");
    app_.add_subcommand("version", "Print the version")->callback([this] {
      chosen_ = [this] { return context_.out.write(version_text() + "\n"); };
    });
  }

  Context& context_;
  CLI::App app_{"StrideDB from the command line: bulk loads, lookups and joins", "stride"};
  std::function<ExitStatus()> chosen_;
  std::string shell_;
};

// The arguments without the program's name. `help load` is `load --help`.
std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  return arguments;
}

ExitStatus run_guarded(int argc, const char* const* argv, Context* context) {
  try {
    std::vector<std::string> arguments = arguments_of(argc, argv);
    // Its arguments are not ours to read.
    if (!arguments.empty() && arguments[0] == "bench")
      return run_bench({arguments.begin() + 1, arguments.end()});
    ExitStatus outcome = Commands(context).run(std::move(arguments));
    if (outcome.ok()) outcome = context->out.flush();
    return outcome;
  } catch (const std::bad_alloc&) {
    return ExitStatus(ExitCode::no_room, "out of memory");
  } catch (const std::exception& error) {
    return ExitStatus(ExitCode::failure, error.what());
  }
}

}  // namespace

int run(int argc, const char* const* argv, const Environment& environment) {
  Context context(environment);
  ExitStatus outcome = run_guarded(argc, argv, &context);
  if (!outcome.ok() && outcome.code() != ExitCode::closed_pipe) {
    bool colour = isatty(environment.err) && !std::getenv("NO_COLOR");
    context.note((colour ? "\x1b[1;31mstride:\x1b[0m " : "stride: ") + outcome.message());
  }
  return static_cast<int>(outcome.code());
}

}  // namespace stride::cli
