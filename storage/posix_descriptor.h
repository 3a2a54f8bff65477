// Descriptors of the operating system, and how files are opened.
//
//   Result<Descriptor> fd = open_regular(path, O_RDONLY, "open");
//   ssize_t n = retry([&] { return ::pread(fd->get(), text, sizeof text, 0); });
//
// Internal to storage.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "storage/status.h"

namespace stride {

// Owns a descriptor, or none.
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

// The directory that a path is in.
std::string parent_of(const std::string& path);

// Whether the path names the file that is open.
bool is_named(const std::string& path, int fd);

// Adds O_CLOEXEC to the flags; invalid, with errno, where it fails. A file that it creates is for
// its user, and for those others who may do the same with the directory, as far as the umask lets.
Descriptor open_descriptor(const std::string& path, int flags);
// A regular file alone: opening a FIFO or reading a device could wait for ever, and a symbolic link
// may lead out of the directory.
Result<Descriptor> open_regular(const std::string& path, int flags, std::string_view what);
// A second descriptor of an open file; invalid where descriptors are scarce: files that are only
// mapped must not keep others from being opened.
Descriptor spare_descriptor(int fd);

// Whether `ulimit -f` lets a file have so many bytes. To be asked before a file grows: the system
// answers what goes beyond with a signal, which ends a process that does not expect it.
bool within_size_limit(uint64_t bytes);

}  // namespace stride
