// The real file system. Errors carry the path and, where one is known, the remedy.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/aligned_bytes.h"
#include "storage/file.h"
#include "storage/map_limit.h"
#include "storage/page_fetch.h"
#include "storage/process.h"

namespace stride {

namespace {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void release() { fd_ = -1; }  // somebody else closes it

 private:
  int fd_ = -1;
};

// Repeats a call that a signal interrupted; every other failure is final.
template <class Call>
auto retry(Call call) {
  decltype(call()) r;
  do {
    r = call();
  } while (r == -1 && errno == EINTR);
  return r;
}

// 0 to 2: where one of these is closed, the system gives its number to the next file that is
// opened, and whatever the process prints then goes into that file.
constexpr int first_own_descriptor = STDERR_FILENO + 1;

Descriptor open_descriptor(const std::string& path, int flags) {
  Descriptor fd(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }));
  if (!fd.valid() || fd.get() >= first_own_descriptor) return fd;
  return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_own_descriptor));
}

// Whether `ulimit -f` lets a file have so many bytes. To be asked before a file grows: the system
// answers what goes beyond with a signal, which ends a process that does not expect it.
bool within_size_limit(uint64_t bytes) {
  struct rlimit limit;
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         bytes <= limit.rlim_cur;
}

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

// A regular file alone: opening a FIFO or reading a device could wait for ever. What is opened for
// writing is not looked for behind a symbolic link, which may lead out of the directory.
Result<Descriptor> open_regular(const std::string& path, int flags, std::string_view what) {
  bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (writes) flags |= O_NOFOLLOW;
  Descriptor fd = open_descriptor(path, flags | O_NONBLOCK | O_NOCTTY);
  // Another process holds a lease on it, which it gives back to an opener that waits.
  if (!fd.valid() && errno == EWOULDBLOCK) fd = open_descriptor(path, flags | O_NOCTTY);
  if (!fd.valid() && errno == ELOOP && writes) return no_regular_file(path, "symbolic link");
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

std::string parent_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A second descriptor of an open file; invalid where descriptors are scarce: files that are only
// mapped must not keep others from being opened.
Descriptor spare_descriptor(int fd) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, first_own_descriptor));
  struct rlimit limit;
  if (!copy.valid() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return copy;
  bool scarce = static_cast<rlim_t>(copy.get()) >= limit.rlim_cur / 2;
  return scarce ? Descriptor() : std::move(copy);
}

class PosixMapping final : public Mapping {
 public:
  PosixMapping(std::string path, Descriptor fd, void* address, size_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), address_(address) {
    bytes_ = {static_cast<const std::byte*>(address), bytes};
  }
  ~PosixMapping() override {
    if (address_) ::munmap(address_, bytes_.size());
  }
  PosixMapping(const PosixMapping&) = delete;
  PosixMapping& operator=(const PosixMapping&) = delete;

  bool in_memory(uint64_t offset) const override;
  void will_need(FileRange range) const override;
  Status fetch(std::span<const FileRange> ranges) const override;
  void begin_random() const override { advise(1); }
  void end_random() const override { advise(-1); }

 private:
  void advise(int more_random) const;
  FileRange clipped(FileRange range) const {
    uint64_t offset = std::min<uint64_t>(range.offset, bytes_.size());
    return {offset, std::min<uint64_t>(range.bytes, bytes_.size() - offset)};
  }

  const std::string path_;
  const Descriptor fd_;  // may be invalid
  void* address_;
  const CountedMapping counted_;
  mutable std::mutex random_mutex_;
  mutable int random_ = 0;  // readers between begin_random() and end_random()
};

uint64_t memory_page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void PosixMapping::advise(int more_random) const {
  std::lock_guard lock(random_mutex_);
  bool before = random_ > 0;
  random_ += more_random;
  bool now = random_ > 0;
  // A hint, whose failure changes nothing.
  if (address_ && now != before) {
    ::madvise(address_, bytes_.size(), now ? MADV_RANDOM : MADV_NORMAL);
  }
}

bool PosixMapping::in_memory(uint64_t offset) const {
  if (offset >= bytes_.size()) return true;
  auto* page = static_cast<char*>(address_) + offset / memory_page_bytes() * memory_page_bytes();
  unsigned char resident = 0;
  return ::mincore(page, 1, &resident) != 0 || (resident & 1) != 0;
}

void PosixMapping::will_need(FileRange range) const {
  // The kernel reads no more for one call than its read-ahead or its largest request, whichever is
  // larger: 128 KiB at least, unless read-ahead was made smaller than it is by default.
  constexpr uint64_t piece_bytes = 128 << 10;
  range = clipped(range);
  uint64_t end = range.offset + range.bytes;
  for (uint64_t at = range.offset / memory_page_bytes() * memory_page_bytes(); at < end;) {
    uint64_t bytes = std::min(piece_bytes, end - at);
    if (::madvise(static_cast<char*>(address_) + at, bytes, MADV_WILLNEED) != 0) return;
    at += bytes;
  }
}

Status PosixMapping::fetch(std::span<const FileRange> ranges) const {
  if (!fd_.valid()) {
    for (FileRange range : ranges) will_need(range);
    return {};
  }
  std::vector<FileRange> inside;
  inside.reserve(ranges.size());
  for (FileRange range : ranges) inside.push_back(clipped(range));
  return fetch_pages(fd_.get(), path_, inside);
}

// A small file's bytes, where mappings are scarce.
class CopiedFile final : public Mapping {
 public:
  explicit CopiedFile(AlignedBytes bytes) : copy_(std::move(bytes)) {
    bytes_ = {copy_.data(), copy_.size()};
  }

 private:
  const AlignedBytes copy_;
};

class PosixFile final : public File {
 public:
  PosixFile(std::string path, Descriptor buffered, Descriptor direct)
      : path_(std::move(path)), buffered_(std::move(buffered)), direct_(std::move(direct)) {}

  const std::string& path() const override { return path_; }
  Status read_at(uint64_t offset, std::span<std::byte> out) override;
  Status write_at(uint64_t offset, Bytes data) override;
  Status allocate(uint64_t bytes) override;
  Status truncate(uint64_t bytes) override;
  Status sync() override;
  Result<uint64_t> size() override;
  Result<std::shared_ptr<const Mapping>> map() override;

 private:
  Status failed(int error, const char* what) const {
    return Status::from_errno(error, what, path_);
  }
  bool can_go_direct(uint64_t offset, Bytes data) const;

  const std::string path_;
  const Descriptor buffered_;
  // A second descriptor of the same file, opened with O_DIRECT; invalid where it is not wanted or
  // the file system refused. The kernel keeps the page cache coherent with direct writes, and
  // fsync of either descriptor covers both.
  const Descriptor direct_;
  std::atomic<bool> direct_refused_{false};
};

Status PosixFile::read_at(uint64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = retry([&] {
      return ::pread(buffered_.get(), out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (n < 0) return failed(errno, "read");
    if (n == 0) {
      return Status::corruption(path_, offset + done, "the file ends early")
          .with_remedy("restore the file from a backup");
    }
    done += static_cast<size_t>(n);
  }
  return {};
}

bool PosixFile::can_go_direct(uint64_t offset, Bytes data) const {
  if (!direct_.valid() || direct_refused_.load(std::memory_order_relaxed)) return false;
  uint64_t bits = offset | data.size() | reinterpret_cast<uintptr_t>(data.data());
  return bits % direct_alignment == 0;
}

Status PosixFile::write_at(uint64_t offset, Bytes data) {
  if (!within_size_limit(offset + data.size())) return failed(EFBIG, "write");
  bool direct = can_go_direct(offset, data);
  while (!data.empty()) {
    int fd = direct ? direct_.get() : buffered_.get();
    ssize_t n =
        retry([&] { return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset)); });
    if (n < 0 && errno == EINVAL && direct) {
      direct_refused_.store(true, std::memory_order_relaxed);
      direct = false;
      continue;
    }
    if (n < 0) return failed(errno, "write");
    if (n == 0) return failed(ENOSPC, "write");
    offset += static_cast<uint64_t>(n);
    data = data.subspan(static_cast<size_t>(n));
    // A partial direct write may end off the alignment; the rest then goes through the cache.
    direct = direct && can_go_direct(offset, data);
  }
  return {};
}

Status PosixFile::allocate(uint64_t bytes) {
  if (!within_size_limit(bytes)) return failed(EFBIG, "allocate");
  int r = retry([&] { return ::fallocate(buffered_.get(), 0, 0, static_cast<off_t>(bytes)); });
  if (r != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return failed(errno, "allocate");
  // fallocate never shrinks, and is absent on some file systems.
  Result<uint64_t> now = size();
  if (!now.ok()) return now.status();
  return *now == bytes ? Status() : truncate(bytes);
}

Status PosixFile::truncate(uint64_t bytes) {
  if (!within_size_limit(bytes)) {
    Result<uint64_t> now = size();
    if (!now.ok()) return now.status();
    if (*now < bytes) return failed(EFBIG, "truncate");
  }
  int r = retry([&] { return ::ftruncate(buffered_.get(), static_cast<off_t>(bytes)); });
  return r == 0 ? Status() : failed(errno, "truncate");
}

Status PosixFile::sync() {
  // fdatasync also writes the metadata that is needed to read the data back: size and extents.
  int r = retry([&] { return ::fdatasync(buffered_.get()); });
  return r == 0 ? Status() : failed(errno, "sync");
}

Result<uint64_t> PosixFile::size() {
  struct stat st;
  if (::fstat(buffered_.get(), &st) != 0) return failed(errno, "stat");
  return static_cast<uint64_t>(st.st_size);
}

Result<std::shared_ptr<const Mapping>> PosixFile::map() {
  Result<uint64_t> bytes = size();
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0) {
    return std::shared_ptr<const Mapping>(new PosixMapping(path_, Descriptor(), nullptr, 0));
  }
  if (belongs_on_heap(*bytes)) {
    AlignedBytes copy;
    copy.resize(*bytes);
    STRIDE_TRY(read_at(0, {copy.data(), *bytes}));
    return std::shared_ptr<const Mapping>(std::make_shared<CopiedFile>(std::move(copy)));
  }
  void* p = ::mmap(nullptr, *bytes, PROT_READ, MAP_SHARED, buffered_.get(), 0);
  if (p == MAP_FAILED && errno == ENOMEM) return no_room_for_mapping("mmap").with_file(path_);
  if (p == MAP_FAILED) return failed(errno, "mmap");
  return std::shared_ptr<const Mapping>(
      new PosixMapping(path_, spare_descriptor(buffered_.get()), p, *bytes));
}

// Whether the path names the file that is open.
bool is_named(const std::string& path, int fd) {
  struct stat open, named;
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

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
    if (created_ && is_named(path_, fd_.get())) ::unlink(path_.c_str());
  }
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
Result<bool> create_one_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
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
  Status sync_directory(const std::string& directory) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;
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
  return std::unique_ptr<File>(new PosixFile(path, std::move(*buffered), std::move(direct)));
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
  std::vector<std::string> created;
  Result<bool> there = exists(path);
  if (!there.ok()) return there.status();
  std::string trimmed = path.substr(0, path.find_last_not_of('/') + 1);
  std::string parent = parent_of(trimmed);
  if (!*there && !path.empty()) {
    Result<std::vector<std::string>> parents = create_directory(parent);
    if (!parents.ok()) return parents.status();
    created = std::move(*parents);
  }
  Result<bool> made = create_one_directory(*there ? path : trimmed);
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
  constexpr int most_attempts = 1000;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
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

}  // namespace

FileSystem& FileSystem::posix() {
  static PosixFileSystem instance;
  return instance;
}

}  // namespace stride
