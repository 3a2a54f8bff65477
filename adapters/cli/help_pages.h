// What is made from the commands' own description: shell completion and the manual page.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stride::cli {

// The words that an option takes; none where it takes anything.
std::vector<std::string> choices_of(const CLI::Option* option);

std::string bash_completion(CLI::App* app);
std::string zsh_completion(CLI::App* app);
std::string fish_completion(CLI::App* app);
// For man(1), in troff.
std::string manual_page(CLI::App* app);

}  // namespace stride::cli
