// Where the lines of `stride shell` come from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/shell/completion.h"
#include "adapters/cli/shell/history_file.h"

namespace stride::cli {

class LineSource {
 public:
  virtual ~LineSource() = default;
  // Sets *line, without its end, or *end where there is none any more. interrupted: a signal came,
  // and what was typed is dropped.
  virtual ExitStatus next(std::string* line, bool* end) = 0;
};

// A terminal or two: of a person who types, and where the prompt and the lines are shown.
struct Terminal {
  int in = 0, out = 2;
  std::string prompt;
};

// Lines as they come, from a pipe or a file; after a prompt where there is a terminal to show it
// on.
std::unique_ptr<LineSource> plain_lines(int in, const Terminal* prompt_on = nullptr);

// Lines that are edited, with a history and completion. Null in a build without libedit.
std::unique_ptr<LineSource> edited_lines(const Terminal& terminal, HistoryFile history,
                                         std::function<Completion(std::string_view)> complete);

}  // namespace stride::cli
