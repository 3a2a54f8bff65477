#include "adapters/cli/help_pages.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <sstream>
#include <vector>

namespace stride::cli {
namespace {

std::vector<CLI::App*> commands_of(CLI::App* app) {
  return app->get_subcommands([](CLI::App*) { return true; });
}

// Options with a name, and those that are shown.
std::vector<CLI::Option*> named_options(CLI::App* command) {
  return command->get_options([](const CLI::Option* option) {
    return !option->get_lnames().empty() && !option->get_group().empty();
  });
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string quote_for_shell(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min(text.find(". "), text.find('\n')));
}

std::string troff(const std::string& text) {
  std::string result;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_start = c == '\n';
  }
  return result;
}

std::string troff_options(CLI::App* command) {
  std::string text;
  for (CLI::Option* option : command->get_options()) {
    if (option->get_group().empty()) continue;
    bool named = !option->get_lnames().empty();
    std::string type = option->get_type_name();
    type = type.substr(0, type.find(':'));
    text +=
        ".TP\n\\fB" + troff(named ? "--" + option->get_lnames()[0] : option->get_name()) + "\\fR";
    if (named && option->get_items_expected_max() != 0) text += " \\fI" + troff(type) + "\\fR";
    text += "\n" + troff(option->get_description()) + "\n";
  }
  return text;
}

}  // namespace

// "{a,b,c}" as a validator of a list describes itself.
std::vector<std::string> choices_of(const CLI::Option* option) {
  std::string type = option->get_type_name();
  size_t open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

std::string bash_completion(CLI::App* app) {
  std::vector<std::string> names;
  std::string options, choices;
  for (CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    std::vector<std::string> words;
    for (CLI::Option* option : named_options(command)) {
      words.push_back("--" + option->get_lnames()[0]);
      std::vector<std::string> of_option = choices_of(option);
      if (!of_option.empty()) {
        choices += "    " + command->get_name() + ":--" + option->get_lnames()[0] +
                   ") words=" + quote_for_shell(join(of_option)) + " ;;\n";
      }
    }
    options += "      " + command->get_name() + ") words=" + quote_for_shell(join(words)) + " ;;\n";
  }
  return "# Completion for stride: source this file, or put it into\n"
         "# ~/.local/share/bash-completion/completions/stride\n"
         "_stride() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=''\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W " +
         quote_for_shell(join(names)) +
         " -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]}:$before in\n" +
         choices +
         "  esac\n"
         "  if [ -z \"$words\" ] && [ \"${word:0:1}\" = - ]; then\n"
         "    case ${COMP_WORDS[1]} in\n" +
         options +
         "    esac\n"
         "  elif [ \"${COMP_WORDS[1]}\" = help ]; then\n"
         "    words=" +
         quote_for_shell(join(names)) +
         "\n"
         "  elif [ -z \"$words\" ] && [ \"$COMP_CWORD\" -eq 3 ]; then\n"
         "    words=$(stride tables \"${COMP_WORDS[2]}\" 2>/dev/null | cut -f 1)\n"
         "  fi\n"
         "  if [ -n \"$words\" ]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _stride stride\n";
}

std::string zsh_completion(CLI::App* app) {
  // A file of $fpath is run at the first completion, and completes then, too.
  return "#compdef stride\n"
         "# Completion for stride: source this file from ~/.zshrc, after compinit, or put it into a\n"
         "# folder of $fpath as _stride\n"
         "autoload -Uz bashcompinit && bashcompinit\n" +
         bash_completion(app) +
         "if [ \"${funcstack[1]}\" = _stride ]; then _bash_complete -o filenames -F _stride; fi\n";
}

std::string fish_completion(CLI::App* app) {
  std::string text =
      "# Completion for stride: put this into ~/.config/fish/completions/stride.fish\n";
  for (CLI::App* command : commands_of(app)) {
    text += "complete -c stride -f -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            quote_for_shell(command->get_description()) + "\n";
    for (CLI::Option* option : named_options(command)) {
      text += "complete -c stride -n '__fish_seen_subcommand_from " + command->get_name() +
              "' -l " + option->get_lnames()[0] + " -d " +
              quote_for_shell(first_sentence(option->get_description()));
      std::vector<std::string> choices = choices_of(option);
      if (!choices.empty()) text += " -x -a " + quote_for_shell(join(choices));
      text += "\n";
    }
  }
  return text;
}

std::string manual_page(CLI::App* app) {
  std::string text =
      ".TH STRIDE 1\n.SH NAME\nstride \\- " + troff(app->get_description()) +
      "\n.SH SYNOPSIS\n.B stride\n.I COMMAND\n.RI [ ARGUMENTS ]\n"
      ".SH DESCRIPTION\nData goes to the standard output and all else to the standard error. With\n"
      ".B \\-\\-json\ndata is JSON.\n";
  for (CLI::App* command : commands_of(app)) {
    text += ".SH " + troff(command->get_name()) + "\n" + troff(command->get_description()) + ".\n";
    text += troff_options(command);
    if (!command->get_footer().empty())
      text += ".PP\n.nf\n" + troff(command->get_footer()) + "\n.fi\n";
  }
  return text + ".SH EXIT STATUS\n.nf\n" + troff(app->get_footer()) + "\n.fi\n";
}

}  // namespace stride::cli
