// What is made from the commands' own description: shell completion and the manual page.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace stride::cli {

std::string bash_completion(CLI::App* app);
std::string zsh_completion(CLI::App* app);
std::string fish_completion(CLI::App* app);
// For man(1), in troff.
std::string manual_page(CLI::App* app);

}  // namespace stride::cli
