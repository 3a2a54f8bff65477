#include "adapters/cli/argument_errors.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "adapters/cli/help_pages.h"
#include "adapters/cli/text/brackets.h"
#include "adapters/cli/text/similar_names.h"

namespace stride::cli {
namespace {

std::vector<std::string> all_options(CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames())
      if (!option->get_group().empty()) names.push_back("--" + name);
  return names;
}

// "stride " before a command, and nothing before one of a shell.
std::string program_of(const CLI::App* app) {
  return app->get_name().empty() ? "" : app->get_name() + " ";
}

// "stride load DB TABLE FILE..."
std::string usage_line(CLI::App* command) {
  std::string line = program_of(command->get_parent()) + command->get_name();
  for (const CLI::Option* option : command->get_options()) {
    if (!option->get_lnames().empty() || !option->get_snames().empty()) continue;
    std::string name = option->get_name();
    if (option->get_items_expected_max() > 1) name += "...";
    line += " " + (option->get_required() ? name : "[" + name + "]");
  }
  return line;
}

// The option that a message begins with, and the rest of the message; null where there is none.
const CLI::Option* option_of(CLI::App* command, std::string_view message, std::string_view* rest) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : command->get_options()) {
    const std::string name = option->get_name();
    if (!message.starts_with(name) || message.size() == name.size()) continue;
    const char next = message[name.size()];
    if (next != ':' && next != ' ') continue;
    found = option;
    *rest = message.substr(std::min(message.size(), name.size() + (next == ':' ? 2 : 1)));
  }
  return found;
}

// Cuts a known beginning off. False: the text has another one.
bool take(std::string_view beginning, std::string_view* text) {
  if (!text->starts_with(beginning)) return false;
  text->remove_prefix(beginning.size());
  return true;
}

std::string none_of(const std::string& name, std::string_view value,
                    const std::vector<std::string>& choices) {
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
  return name + ": " + in_quotes(value) + " is none of " + list + ": " +
         did_you_mean(value, choices, "give one of these");
}

// "0 to 5", which CLI11 from 2.4 on writes as "[0 - 5]".
std::string range_text(std::string_view range) {
  const size_t between = range.rfind(" - ");
  if (!range.starts_with('[') || between == std::string_view::npos) return std::string(range);
  return std::string(range.substr(1, between - 1)) + " to " +
         std::string(range.substr(between + 3, range.size() - between - 4));
}

// "Value 9 not in range 0 to 5", "int not in {bytes,u64}", or what a check of this program says.
std::string wrong_value(const CLI::Option& option, std::string_view message) {
  const std::string name = option.get_name();
  const std::vector<std::string> choices = choices_of(&option);
  const size_t list = message.rfind(" not in {");
  if (!choices.empty() && list != std::string_view::npos)
    return none_of(name, message.substr(0, list), choices);
  std::string_view value = message;
  const size_t range = message.rfind(" not in range ");
  if (take("Value ", &value) && range != std::string_view::npos) {
    constexpr std::string_view words = " not in range ";
    value = value.substr(0, value.size() - (message.size() - range));
    return name + ": " + in_quotes(value) + " is no number from " +
           range_text(message.substr(range + words.size())) + ": give such a number";
  }
  return name + ": " + std::string(message);
}

// An option that is given too often, or without what it needs.
std::string wrong_count(const CLI::Option& option) {
  const std::string name = option.get_name();
  std::string type = option.get_type_name();
  type = type.substr(0, type.find(':'));
  if (static_cast<int>(option.results().size()) > option.get_items_expected_max())
    return name + " is given more than once: give it once";
  return name + " is given without its " + type + ": give " + name + " " + type;
}

// The first of what looks like an option and is none of the command's.
std::string unknown_option(CLI::App* command) {
  for (const std::string& left : command->remaining())
    if (left.size() > 1 && left[0] == '-') return left.substr(0, left.find('='));
  return "";
}

std::string in_own_words(const CLI::ParseError& error, CLI::App* command,
                         const std::vector<std::string>& extras) {
  std::string_view message = error.what(), rest;
  const std::string usage = usage_line(command) + "; " + program_of(command->get_parent()) +
                            "help " + command->get_name() + " has all options and examples";
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    const std::string missing(message.substr(0, message.find(' ')));
    return command->get_name() + " needs " + missing + ": " + usage;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    return command->get_name() + " has no use for " +
           in_quotes(extras.empty() ? "" : without_mark(extras[0])) + ": " + usage;
  }
  const bool converts = take("Could not convert: ", &message);
  const CLI::Option* option = option_of(command, message, &rest);
  if (!option) return std::string(error.what()) + ": " + usage;
  if (converts) {
    take("= ", &rest);
    const std::string type = option->get_type_name();
    return option->get_name() + ": " + in_quotes(rest) +
           " is no value that it can have: " + "give " + option->get_name() +
           (type.empty() ? " alone" : " " + type);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return wrong_count(*option);
  return wrong_value(*option, rest);
}

}  // namespace

std::string no_such_command(const std::string& name, CLI::App* app) {
  const std::string help = program_of(app) + "help lists all";
  if (name.starts_with('-'))
    return (app->get_name().empty() ? "the shell" : app->get_name()) + " has no option " +
           in_quotes(name) + " before its command: " + help;
  std::vector<std::string> commands;
  for (const CLI::App* command : app->get_subcommands([](CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  return "no command " + in_quotes(name) + ": " + did_you_mean(name, commands, help + " commands");
}

std::string argument_error(const CLI::ParseError& error, CLI::App* app) {
  const std::vector<CLI::App*> chosen = app->get_subcommands();
  if (chosen.empty()) return "give a command: " + program_of(app) + "help lists them";
  CLI::App* command = chosen[0];
  const std::string help = program_of(app) + "help " + command->get_name();
  // An option that is not there leaves its value over as an argument: it is told first.
  const std::string name = unknown_option(command);
  if (name.empty()) return in_own_words(error, command, app->remaining(true));
  if (name[1] != '-')
    return command->get_name() + " has no option " + in_quotes(name) +
           ": put -- before arguments that begin with -, or see " + help;
  return command->get_name() + " has no option " + in_quotes(name) + ": " +
         did_you_mean(name, all_options(command), help + " lists what it has");
}

}  // namespace stride::cli
