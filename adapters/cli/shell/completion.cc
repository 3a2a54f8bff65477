#include "adapters/cli/shell/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "adapters/cli/help_pages.h"
#include "adapters/cli/shell/words.h"

namespace stride::cli {
namespace {

using Names = std::vector<std::string>;

std::string type_of(const CLI::Option* option) {
  const std::string type = option->get_type_name();
  return type.substr(0, type.find(':'));
}

// The option of a word that waits for the next one as its value; null where there is none.
const CLI::Option* takes_value(const CLI::App* command, const std::string& word) {
  if (!word.starts_with("--") || word.find('=') != std::string::npos) return nullptr;
  const CLI::Option* option = command->get_option_no_throw(word);
  return option && option->get_items_expected_max() > 0 ? option : nullptr;
}

Names option_names(CLI::App* command) {
  Names names;
  for (const CLI::Option* option : command->get_options())
    if (!option->get_lnames().empty() && !option->get_group().empty())
      names.push_back("--" + option->get_lnames()[0]);
  return names;
}

// Files and folders that go on as the text does; folders with a / behind.
Names file_names(const std::string& typed) {
  const size_t name = typed.rfind('/') + 1;  // 0 where there is none
  const std::string folder = typed.substr(0, name);
  Names names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (file.starts_with('.') && !typed.substr(name).starts_with('.')) continue;
    std::error_code unknown;
    names.push_back(folder + file + (entry->is_directory(unknown) ? "/" : ""));
  }
  return names;
}

// The argument without a name that comes next, where so many were given; null where none does.
const CLI::Option* argument_at(CLI::App* command, size_t given) {
  for (const CLI::Option* option : command->get_options()) {
    if (!option->get_positional()) continue;
    if (given == 0 || option->get_items_expected_max() > 1) return option;
    --given;
  }
  return nullptr;
}

Names command_names(CLI::App* app) {
  Names names;
  for (const CLI::App* command : app->get_subcommands([](CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// before: the words before this one, of which the first is the command.
Names candidates(CLI::App* app, const Names& before, const std::string& typed,
                 const std::function<Names()>& tables) {
  if (before.empty() || before[0] == "help") return command_names(app);
  const std::vector<CLI::App*> named =
      app->get_subcommands([&](CLI::App* one) { return one->get_name() == before[0]; });
  if (named.empty()) return {};
  CLI::App* command = named[0];
  size_t given = 0;
  for (size_t i = 1; i < before.size(); ++i) {
    if (const CLI::Option* option = takes_value(command, before[i])) {
      if (i + 1 < before.size()) {
        ++i;
        continue;
      }
      return type_of(option) == "FILE" ? file_names(typed) : choices_of(option);
    }
    given += !before[i].starts_with("--");
  }
  const CLI::Option* argument = argument_at(command, given);
  const std::string name = argument ? argument->get_name() : "";
  if (typed.starts_with('-')) return option_names(command);
  if (name == "TABLE") return tables();
  if (name == "FILE") return file_names(typed);
  return typed.empty() ? option_names(command) : Names();
}

}  // namespace

Completion complete(CLI::App* app, std::string_view line, const std::function<Names()>& tables) {
  Words parted = split_words(line);
  Completion result;
  result.begin = line.size();
  if (!parted.words.empty() && parted.words.back().end == line.size()) {
    result.begin = parted.words.back().begin;
    result.typed = parted.words.back().text;
    parted.words.pop_back();
  }
  Names before;
  for (const Word& word : parted.words) before.push_back(word.text);
  for (std::string& word : candidates(app, before, result.typed, tables))
    if (word.starts_with(result.typed)) result.words.push_back(std::move(word));
  std::ranges::sort(result.words);
  const auto [first, last] = std::ranges::unique(result.words);
  result.words.erase(first, last);
  return result;
}

}  // namespace stride::cli
