// What is wrong with the arguments of a command, in the words of who typed them: what, in which
// option, and what to do.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace stride::cli {

// "no command 'laod': did you mean 'load'?"
std::string no_such_command(const std::string& name, CLI::App* app);

// error: as app.parse() has thrown it.
std::string argument_error(const CLI::ParseError& error, CLI::App* app);

}  // namespace stride::cli
