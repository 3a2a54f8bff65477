// The lines that were typed into `stride shell`, for the next time.
#pragma once

#include <string>
#include <vector>

namespace stride::cli {

// A text file with a line for each command, the newest last. It is a convenience: where it cannot
// be read or written nothing is said, and nothing fails.
class HistoryFile {
 public:
  // path: empty for none.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}
  // stride/history below $XDG_STATE_HOME, or else below ~/.local/state.
  static std::string usual_path();

  // The newest lines, of which there are at most max_lines. A file that has twice as many is cut.
  std::vector<std::string> read() const;
  void append(const std::string& line) const;

  static constexpr size_t max_lines = 1000;

 private:
  std::string path_;
};

}  // namespace stride::cli
