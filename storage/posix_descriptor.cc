#include "storage/posix_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace stride {

namespace {

// 0 to 2: where one of these is closed, the system gives its number to the next file that is
// opened, and whatever the process prints then goes into that file.
constexpr int first_own_descriptor = STDERR_FILENO + 1;

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "directory";
  if (S_ISFIFO(mode)) return "FIFO";
  if (S_ISSOCK(mode)) return "socket";
  return "device";
}

Status no_regular_file(const std::string& path, std::string_view kind) {
  return Status::invalid("a " + std::string(kind) + " is no file of a database")
      .with_file(path)
      .with_remedy("move it out of the database's directory");
}

}  // namespace

std::string parent_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_named(const std::string& path, int fd) {
  struct stat open, named;
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

Descriptor open_descriptor(const std::string& path, int flags) {
  mode_t mode = S_IRUSR | S_IWUSR;
  struct stat directory;
  // Who may read a directory may read the new file, and who may write there may write it.
  if ((flags & O_CREAT) && ::stat(parent_of(path).c_str(), &directory) == 0)
    mode |= directory.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
  Descriptor fd(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
  if (!fd.valid() || fd.get() >= first_own_descriptor) return fd;
  return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_own_descriptor));
}

Result<Descriptor> open_regular(const std::string& path, int flags, std::string_view what) {
  flags |= O_NOFOLLOW;
  Descriptor fd = open_descriptor(path, flags | O_NONBLOCK | O_NOCTTY);
  // Another process holds a lease on it, which it gives back to an opener that waits.
  if (!fd.valid() && errno == EWOULDBLOCK) fd = open_descriptor(path, flags | O_NOCTTY);
  if (!fd.valid() && errno == ELOOP) return no_regular_file(path, "symbolic link");
  if (!fd.valid() && errno == ENXIO) return no_regular_file(path, "socket");
  if (!fd.valid() && errno == EISDIR) return no_regular_file(path, "directory");
  if (!fd.valid()) return Status::from_errno(errno, what, path);
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return Status::from_errno(errno, "stat", path);
  if (!S_ISREG(st.st_mode)) return no_regular_file(path, kind_of(st.st_mode));
  // Reads through io_uring would not wait either.
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) return Status::from_errno(errno, "fcntl", path);
  return fd;
}

Descriptor spare_descriptor(int fd) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, first_own_descriptor));
  struct rlimit limit;
  if (!copy.valid() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return copy;
  bool scarce = static_cast<rlim_t>(copy.get()) >= limit.rlim_cur / 2;
  return scarce ? Descriptor() : std::move(copy);
}

bool within_size_limit(uint64_t bytes) {
  struct rlimit limit;
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         bytes <= limit.rlim_cur;
}

}  // namespace stride
