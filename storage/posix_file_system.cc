// The real file system. Errors carry the path and, where one is known, the remedy.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "storage/file.h"
#include "storage/posix_descriptor.h"
#include "storage/posix_file.h"
#include "storage/process.h"

namespace stride {

namespace {

// flock() belongs to the open file description, so a second handle of this very process is kept
// out too, and the kernel drops it when the process dies. Forked children share the description:
// their descriptors are closed for them, and only the process that took the lock releases it.
class PosixLock final : public FileLock {
 public:
  PosixLock(std::string path, Descriptor fd, bool created)
      : path_(std::move(path)), fd_(std::move(fd)), created_(created) {
    close_in_children(fd_.get());
  }
  ~PosixLock() override {
    if (made_in_.is_here()) {
      stop_closing_in_children(fd_.get());
      ::flock(fd_.get(), LOCK_UN);
    } else {
      fd_.release();
    }
  }
  void remove_if_created() override {
    if (created_ && is_in_place()) ::unlink(path_.c_str());
  }
  bool is_in_place() const override { return is_named(path_, fd_.get()); }
  int fd() const { return fd_.get(); }

 private:
  const ProcessMark made_in_;
  const std::string path_;
  Descriptor fd_;
  const bool created_;
};

std::string read_owner(int fd) {
  char text[32];
  ssize_t n = retry([&] { return ::pread(fd, text, sizeof text, 0); });
  std::string pid;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) pid += text[i];
  return pid;
}

Status write_owner(int fd, const std::string& path) {
  std::string pid = std::to_string(::getpid()) + "\n";
  if (!within_size_limit(pid.size())) return Status::from_errno(EFBIG, "write", path);
  if (retry([&] { return ::ftruncate(fd, 0); }) != 0 ||
      retry([&] { return ::pwrite(fd, pid.data(), pid.size(), 0); }) < 0) {
    return Status::from_errno(errno, "write", path);
  }
  return {};
}

// Whether it was made; else it was there.
Result<bool> create_one_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return true;
  int error = errno;
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) {
    // Somebody has taken it back meanwhile: not_found, and it can be tried again.
    if (error == EEXIST && ::lstat(path.c_str(), &st) != 0) error = errno;
    return Status::from_errno(error, "create directory", path);
  }
  if (!S_ISDIR(st.st_mode)) return Status::from_errno(ENOTDIR, "create directory", path);
  return false;
}

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<std::vector<std::string>> create_directory(const std::string& path) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status link(const std::string& from, const std::string& to) override;
  Status sync_directory(const std::string& directory) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;
  Result<bool> is_locked(const std::string& path) override;

 private:
  Result<std::vector<std::string>> create_directories(const std::string& path, mode_t mode);
};

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
      return O_RDONLY;
    case OpenMode::create:
    case OpenMode::create_direct:
      return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::write:
      return O_RDWR;
  }
  return O_RDONLY;
}

Result<std::unique_ptr<File>> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  bool creates = mode == OpenMode::create || mode == OpenMode::create_direct;
  Result<Descriptor> buffered = open_regular(path, flags_of(mode), creates ? "create" : "open");
  if (!buffered.ok()) return buffered.status();
  Descriptor direct;
  if (mode == OpenMode::create_direct) {
    direct = open_descriptor(path, O_WRONLY | O_DIRECT | O_NOFOLLOW);
  }
  return make_posix_file(path, std::move(*buffered), std::move(direct));
}

Result<bool> PosixFileSystem::exists(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return Status::from_errno(errno, "stat", path);
}

Result<std::vector<std::string>> PosixFileSystem::list(const std::string& directory) {
  Descriptor fd = open_descriptor(directory, O_RDONLY | O_DIRECTORY);
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  std::unique_ptr<DIR, Close> dir(fd.valid() ? ::fdopendir(fd.get()) : nullptr);
  if (!dir) return Status::from_errno(errno, "open directory", directory);
  fd.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  if (int error = errno) return Status::from_errno(error, "read directory", directory);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> PosixFileSystem::create_directory(const std::string& path) {
  return create_directories(path, S_IRWXU);
}

// mode: of the last one. Those above it are as mkdir -p makes them.
Result<std::vector<std::string>> PosixFileSystem::create_directories(const std::string& path,
                                                                     mode_t mode) {
  std::vector<std::string> created;
  Result<bool> there = exists(path);
  if (!there.ok()) return there.status();
  std::string trimmed = path.substr(0, path.find_last_not_of('/') + 1);
  std::string parent = parent_of(trimmed);
  if (!*there && !path.empty()) {
    constexpr mode_t all = S_IRWXU | S_IRWXG | S_IRWXO;
    Result<std::vector<std::string>> parents = create_directories(parent, all);
    if (!parents.ok()) return parents.status();
    created = std::move(*parents);
  }
  Result<bool> made = create_one_directory(*there ? path : trimmed, mode);
  if (made.ok() && *made) created.push_back(trimmed);
  Status s = made.ok() && !*there ? sync_directory(parent) : made.status();
  if (s.ok()) return created;
  for (size_t i = created.size(); i-- > 0;) (void)remove_directory(created[i]);
  return s;
}

Status PosixFileSystem::remove(const std::string& path) {
  return ::unlink(path.c_str()) == 0 ? Status() : Status::from_errno(errno, "remove", path);
}

Status PosixFileSystem::remove_directory(const std::string& path) {
  return ::rmdir(path.c_str()) == 0 ? Status() : Status::from_errno(errno, "remove", path);
}

Status PosixFileSystem::rename(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? Status()
                                                 : Status::from_errno(errno, "rename", from);
}

// EPERM: the file system has no links, or the system gives none of other users' files.
Status PosixFileSystem::link(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  const int error = errno;
  Status s = Status::from_errno(error, "link", error == EEXIST ? to : from);
  const bool has_none =
      error == EXDEV || error == EPERM || error == EMLINK || error == ENOSYS || error == EOPNOTSUPP;
  return has_none ? Status(StatusCode::unavailable, s.message()).with_file(from) : s;
}

Status PosixFileSystem::sync_directory(const std::string& directory) {
  Descriptor fd = open_descriptor(directory, O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) return Status::from_errno(errno, "open directory", directory);
  if (retry([&] { return ::fsync(fd.get()); }) == 0) return {};
  // Some network file systems have no sync of directories and say so with EINVAL. Whatever else
  // made the sync fail, the directory was open.
  if (errno == EINVAL) return {};
  return Status::from_errno(errno == ENOMEM ? EIO : errno, "sync directory", directory);
}

Status locked_by_other(int fd, const std::string& path) {
  std::string pid = read_owner(fd);
  bool ours = pid == std::to_string(::getpid());
  std::string holder = pid.empty() ? "another process"
                       : ours      ? "another handle of this process (" + pid + ")"
                                   : "process " + pid;
  return Status(StatusCode::locked, "locked by " + holder)
      .with_file(path)
      .with_remedy("close it there first, or open the database read-only");
}

// Who holds the lock may remove its file. So a file that is locked counts only while the path still
// names it: else others lock the one that has taken its place.
Result<std::unique_ptr<FileLock>> PosixFileSystem::lock(const std::string& path) {
  constexpr int max_attempts = 1000;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    Result<Descriptor> fd = open_regular(path, O_RDWR, "open");
    bool create = fd.status().code() == StatusCode::not_found;
    if (create) fd = open_regular(path, O_RDWR | O_CREAT | O_EXCL, "create");
    if (create && fd.status().code() == StatusCode::already_exists) continue;
    if (!fd.ok()) return fd.status();
    if (retry([&] { return ::flock(fd->get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) return Status::from_errno(errno, "lock", path);
      return locked_by_other(fd->get(), path);
    }
    if (!is_named(path, fd->get())) continue;
    auto lock = std::make_unique<PosixLock>(path, std::move(*fd), create);
    Status written = write_owner(lock->fd(), path);
    if (written.ok()) return std::unique_ptr<FileLock>(std::move(lock));
    lock->remove_if_created();
    return written;
  }
  return Status(StatusCode::locked, "others make and remove this file all the time")
      .with_file(path)
      .with_remedy("see which programs open this database, and try again");
}

// The lock is taken for a moment, shared, so that two who ask do not meet each other's. Who locks
// the file in that moment is told that it is locked.
Result<bool> PosixFileSystem::is_locked(const std::string& path) {
  Result<Descriptor> fd = open_regular(path, O_RDONLY, "open");
  if (!fd.ok()) return fd.status();
  if (retry([&] { return ::flock(fd->get(), LOCK_SH | LOCK_NB); }) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return Status::from_errno(errno, "lock", path);
}

}  // namespace

FileSystem& FileSystem::posix() {
  static PosixFileSystem instance;
  return instance;
}

}  // namespace stride
