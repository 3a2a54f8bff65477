#include "benchmark/harness/scratch_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace stride::benchmark {

namespace fs = std::filesystem;

Result<ScratchDirectory> ScratchDirectory::create(const std::string& parent,
                                                  const std::string& name) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return Status::from_errno(error.value(), "mkdir", parent);
  std::string path = (fs::path(parent) / (name + "-XXXXXX")).string();
  std::replace(path.end() - static_cast<std::ptrdiff_t>(name.size() + 7), path.end(), ':', '-');
  if (mkdtemp(path.data()) == nullptr) return Status::from_errno(errno, "mkdtemp", path);
  if (int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY); directory >= 0) {
    (void)::syncfs(directory);
    ::close(directory);
  }
  return ScratchDirectory(path);
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

uint64_t ScratchDirectory::bytes() const {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path_, error), end; !error && it != end;
       it.increment(error)) {
    struct stat status;
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    bytes += std::min(static_cast<uint64_t>(status.st_size),
                      static_cast<uint64_t>(status.st_blocks) * 512);
  }
  return bytes;
}

}  // namespace stride::benchmark
