#include "adapters/cli/input/same_file.h"

#include <sys/stat.h>

namespace stride::cli {
namespace {

bool is_same(const struct stat& a, const struct stat& b) {
  return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

bool is_same_file(int fd, int other) {
  struct stat a {
  }, b{};
  return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && is_same(a, b);
}

ExitStatus check_not_read(int fd, const std::string& name, const std::vector<std::string>& inputs,
                          int standard_input) {
  struct stat written {};
  if (fstat(fd, &written) != 0) return {};  // what is written will fail
  for (const std::string& input : inputs) {
    struct stat read {};
    bool standard = input == "-";
    if ((standard ? fstat(standard_input, &read) : stat(input.c_str(), &read)) != 0) continue;
    if (is_same(written, read))
      return ExitStatus::usage(name + " goes into the file that is read (" +
                               (standard ? "standard input" : input) + "): give it another file");
  }
  return {};
}

}  // namespace stride::cli
