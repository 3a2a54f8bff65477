// What a Tab completes in `stride shell`: commands, then names of tables and files, then options
// and their choices.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace stride::cli {

struct Completion {
  size_t begin = 0;                // where the word begins that is completed
  std::string typed;               // what it has so far, without quotes
  std::vector<std::string> words;  // what it may become, ascending; each begins with `typed`
};

// line: up to the cursor. app: with the commands of the shell. tables: called only where a table's
// name is due.
Completion complete(CLI::App* app, std::string_view line,
                    const std::function<std::vector<std::string>()>& tables);

}  // namespace stride::cli
