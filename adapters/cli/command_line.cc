#include "adapters/cli/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <sstream>

#include "adapters/cli/bench_program.h"
#include "adapters/cli/context.h"
#include "adapters/cli/help_pages.h"
#include "adapters/cli/subcommands.h"

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
    app_.footer(std::string("stride COMMAND --help says more.\n\n") + exit_codes);
    for (const Subcommands::Command& command : Subcommands::all()) add(command);
    app_.add_subcommand("bench", "Measure StrideDB beside its peers; see stride bench --help");
    add_help_pages();
  }

  ExitStatus run(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out, err;
      bool fine = app_.exit(error, out, err) == 0;
      STRIDE_CLI_TRY(context_.out.write(out.str()));
      std::string message = err.str();
      while (!message.empty() && message.back() == '\n') message.pop_back();
      return fine ? ExitStatus() : ExitStatus::usage(message);
    }
    ExitStatus outcome = chosen_();
    if (outcome.ok()) outcome = context_.out.flush();
    return outcome;
  }

 private:
  void add(const Subcommands::Command& registered) {
    CLI::App* command = app_.add_subcommand(registered.name, registered.summary);
    Subcommands::Bound bound = registered.bind();
    bound.add_options(command);
    command->add_flag("--json", context_.json, "Data as JSON");
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
  }

  Context& context_;
  CLI::App app_{"StrideDB from the command line: bulk loads, lookups and joins", "stride"};
  std::function<ExitStatus()> chosen_;
  std::string shell_;
};

ExitStatus run_guarded(int argc, const char* const* argv, Context* context) {
  // Its arguments are not ours to read.
  if (argc > 1 && std::string_view(argv[1]) == "bench") return run_bench(argc - 2, argv + 2);
  try {
    ExitStatus outcome = Commands(context).run(argc, argv);
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
