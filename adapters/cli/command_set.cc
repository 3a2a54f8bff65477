#include "adapters/cli/command_set.h"

#include <algorithm>
#include <exception>
#include <new>
#include <sstream>
#include <utility>

#include "adapters/cli/argument_errors.h"
#include "adapters/cli/help_pages.h"
#include "adapters/cli/text/brackets.h"
#include "engine/library_version.h"

namespace stride::cli {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 failure of the system, 2 wrong arguments, 3 bad rows, 4 not found,\n"
    "5 locked or not permitted, 6 damaged database, 7 disk or memory full, 8 not available here,\n"
    "130 interrupted, 141 the reader of the output has gone";

std::string version_text() { return std::string("stride ") + version(); }

// Without the database of a shell, which it has already: its value is set once, and the argument is
// gone. False: the command's first argument is none.
bool fix_database(CLI::App* command, const std::string& database) {
  for (CLI::Option* option : command->get_options()) {
    if (!option->get_positional()) continue;
    if (option->get_name() != "DB") return false;
    option->add_result(database);
    option->run_callback();
    return command->remove_option(option);
  }
  return false;
}

// The values of its options are what was given, without the mark that parse() puts before some.
void keep_brackets(CLI::App* command) {
  const CLI::Validator unmark(
      [](std::string& text) {
        text = without_mark(text);
        return std::string();
      },
      "");
  for (CLI::Option* option : command->get_options())
    if (option->get_items_expected_max() > 0) option->transform(unmark);
}

// Arguments as CLI11 leaves them whole. It takes the next argument for the value of "--from=".
std::vector<std::string> marked(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  bool options = true;
  for (const std::string& argument : arguments) {
    options = options && argument != "--";
    const size_t equals =
        options && argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (equals == std::string::npos || (!value.empty() && with_mark(value) == value)) {
      result.push_back(with_mark(argument));
    } else {
      result.push_back(argument.substr(0, equals));
      result.push_back(value.empty() ? std::string(1, bracket_mark) : with_mark(value));
    }
  }
  return result;
}

// The examples of a footer as they are typed in a shell, and without those that need another one.
std::string shell_examples(const std::string& footer) {
  std::istringstream lines(footer);
  std::string text, heading;
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view call = "  stride ";
    if (line.starts_with("Example")) {
      heading = line + "\n";
    } else if (!line.starts_with("  ")) {
      text += line + "\n";
    } else if (line.starts_with(call) && line.find_first_of("|>") == std::string::npos) {
      std::istringstream words(line.substr(call.size()));
      std::string name, database, rest;
      words >> name >> database;
      std::getline(words, rest);
      text += std::exchange(heading, "") + "  " + name + rest + "\n";
    }
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

ExitStatus guarded(Context* context, const std::function<ExitStatus()>& work) {
  context->done = nullptr;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    std::string text = "out of memory";
    if (context->done) text.append(": ").append(context->done);
    return ExitStatus(ExitCode::no_room, std::move(text));
  } catch (const std::exception& error) {
    return ExitStatus(ExitCode::failure, error.what());
  }
}

CommandSet::CommandSet(Context* context)
    : context_(*context),
      app_("StrideDB from the command line: bulk loads, lookups and joins", "stride") {
  app_.require_subcommand(1);
  app_.footer(std::string("stride help COMMAND says more.\n\n") + exit_codes);
  app_.set_version_flag("--version", version_text(), "Print the version and exit");
  for (const Subcommands::Command& command : Subcommands::all()) add(command);
  app_.add_subcommand("bench", "Measure StrideDB beside its peers; see stride bench --help");
  add_help_pages();
}

CommandSet::CommandSet(Context* context, const std::string& database, bool has_input)
    : context_(*context),
      app_("Commands of this shell", ""),
      database_(database),
      in_shell_(true),
      has_input_(has_input) {
  app_.require_subcommand(1);
  app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
  for (const Subcommands::Command& command : Subcommands::all())
    if (CLI::App* added = add(command)) added->footer(shell_examples(added->get_footer()));
  add_shell_words();
}

ExitStatus CommandSet::run(std::vector<std::string> arguments) {
  // `help load` is `load --help`.
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  if (!arguments.empty() && !begins_well(arguments[0]))
    return ExitStatus::usage(no_such_command(arguments[0], &app_));
  STRIDE_CLI_TRY(parse(std::move(arguments)));
  ExitStatus outcome = chosen_ ? chosen_() : ExitStatus();
  return outcome.ok() ? context_.out.flush() : outcome;
}

ExitStatus CommandSet::parse(std::vector<std::string> arguments) {
  arguments = marked(arguments);
  std::ranges::reverse(arguments);  // CLI11 takes the last one first
  try {
    app_.parse(arguments);
  } catch (const CLI::Success& help) {
    std::ostringstream out;
    app_.exit(help, out, out);
    chosen_ = nullptr;
    return context_.out.write(out.str());
  } catch (const CLI::ParseError& error) {
    return ExitStatus::usage(argument_error(error, &app_));
  }
  return check_input();
}

// In a script the standard input is what the commands are read from.
ExitStatus CommandSet::check_input() const {
  if (has_input_) return {};
  for (const CLI::App* command : app_.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      const bool reads = option->get_name() == "FILE" || option->get_name() == "--keys";
      if (reads && std::ranges::count(option->results(), "-") != 0)
        return ExitStatus::usage(option->get_name() +
                                 ": '-' is the standard input, from which the commands come: give "
                                 "the name of a file");
    }
  }
  return {};
}

// With a command, or with an option that stands alone.
bool CommandSet::begins_well(const std::string& argument) {
  if (argument.starts_with('-')) return app_.get_option_no_throw(argument) != nullptr;
  return !app_.get_subcommands([&](CLI::App* c) { return c->get_name() == argument; }).empty();
}

CLI::App* CommandSet::add(const Subcommands::Command& registered) {
  CLI::App* command = app_.add_subcommand(registered.name, registered.summary);
  Subcommands::Bound bound = registered.bind();
  bound.add_options(command);
  const bool nests = in_shell_ && command->get_name() == "shell";
  if (nests || (in_shell_ && !fix_database(command, database_))) {
    app_.remove_subcommand(command);
    return nullptr;
  }
  keep_brackets(command);
  if (registered.json) command->add_flag("--json", context_.json, "Data as JSON");
  command->callback([this, bound] { chosen_ = [=, this] { return bound.run(&context_); }; });
  return command;
}

void CommandSet::add_help_pages() {
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

void CommandSet::add_shell_words() {
  app_.add_subcommand("help", "Print what a command does, or which commands there are")
      ->add_option("COMMAND", shell_, "Name of the command");
  for (const char* name : {"exit", "quit"}) {
    app_.add_subcommand(name, "Leave the shell")->callback([this] {
      chosen_ = [this] {
        left_ = true;
        return ExitStatus();
      };
    });
  }
  app_.footer(
      "help COMMAND says more. Quotes and \\ are those of a shell: put users 17 'Ada Lovelace'");
}

}  // namespace stride::cli
