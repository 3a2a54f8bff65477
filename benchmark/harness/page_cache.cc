#include "benchmark/harness/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

namespace stride::benchmark {
namespace {

// Calls each(path, descriptor) for every regular file below the directory.
template <class Each>
Status each_file(const std::string& directory, const Each& each) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    std::string path = it->path().string();
    int file = ::open(path.c_str(), O_RDONLY);
    if (file < 0) return Status::from_errno(errno, "open", path);
    Status status = each(path, file);
    ::close(file);
    STRIDE_TRY(std::move(status));
  }
  return error ? Status::from_errno(error.value(), "read", directory) : Status();
}

uint64_t cached_bytes_of(int file) {
  struct stat status;
  if (::fstat(file, &status) != 0 || status.st_size == 0) return 0;
  auto bytes = static_cast<uint64_t>(status.st_size);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return 0;
  auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((bytes + page - 1) / page);
  uint64_t cached = 0;
  if (::mincore(mapped, bytes, there.data()) == 0) {
    for (unsigned char flags : there) cached += (flags & 1) * page;
  }
  ::munmap(mapped, bytes);
  return std::min(cached, bytes);
}

}  // namespace

Status evict_page_cache(const std::string& directory) {
  return each_file(directory, [](const std::string& path, int file) -> Status {
    if (::fsync(file) != 0) return Status::from_errno(errno, "fsync", path);
    int error = ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return error ? Status::from_errno(error, "posix_fadvise", path) : Status();
  });
}

uint64_t cached_bytes(const std::string& directory) {
  uint64_t bytes = 0;
  (void)each_file(directory, [&](const std::string&, int file) {
    bytes += cached_bytes_of(file);
    return Status();
  });
  return bytes;
}

}  // namespace stride::benchmark
