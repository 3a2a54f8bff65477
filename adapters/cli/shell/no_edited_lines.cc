// A build without libedit.
#include "adapters/cli/shell/line_source.h"

namespace stride::cli {

std::unique_ptr<LineSource> edited_lines(const Terminal&, HistoryFile,
                                         std::function<Completion(std::string_view)>) {
  return nullptr;
}

}  // namespace stride::cli
