#include "adapters/cli/shell/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace stride::cli {
namespace {

// Commands may have data of a user: nobody else is to read them.
constexpr mode_t for_the_user_alone = 0600;

void write_lines(const std::string& path, int flags, const std::string& lines) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, for_the_user_alone);
  if (fd < 0) return;
  // One call, so that lines of two shells do not mix.
  [[maybe_unused]] ssize_t ignored = ::write(fd, lines.data(), lines.size());
  ::close(fd);
}

}  // namespace

std::string HistoryFile::usual_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && state[0] == '/') return std::string(state) + "/stride/history";
  const char* home = std::getenv("HOME");
  if (home && home[0] == '/') return std::string(home) + "/.local/state/stride/history";
  return "";
}

std::vector<std::string> HistoryFile::read() const {
  std::vector<std::string> lines;
  if (path_.empty()) return lines;
  std::ifstream file(path_, std::ios::binary);
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  if (lines.size() <= max_lines) return lines;
  const bool cuts = lines.size() >= 2 * max_lines;
  lines.erase(lines.begin(), lines.end() - max_lines);
  if (!cuts) return lines;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  // Renamed into its place, so that a full disk does not lose the old lines.
  const std::string shorter = path_ + "." + std::to_string(getpid());
  write_lines(shorter, O_TRUNC, text);
  std::error_code error;
  if (std::filesystem::file_size(shorter, error) == text.size() && !error)
    std::filesystem::rename(shorter, path_, error);
  std::filesystem::remove(shorter, error);
  return lines;
}

void HistoryFile::append(const std::string& line) const {
  if (path_.empty()) return;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!std::filesystem::exists(folder, error)) {
    std::filesystem::create_directories(folder.parent_path(), error);
    mkdir(folder.c_str(), 0700);
  }
  write_lines(path_, O_APPEND, line + "\n");
}

}  // namespace stride::cli
