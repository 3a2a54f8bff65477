#include "adapters/cli/input/interruptible_read.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "adapters/cli/interrupt.h"

namespace stride::cli {
namespace {

// What the user typed goes with Ctrl-C, also between poll() and read(), which would wait for more
// then. The terminal is opened once more, for it is not ours alone to make it non-blocking.
ssize_t read_terminal(int fd, void* to, size_t bytes) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int own = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) return ::read(fd, to, bytes);
  const ssize_t n = ::read(own, to, bytes);
  const int error = errno;
  ::close(own);
  errno = error;
  return n;
}

}  // namespace

ExitStatus interruptible_read(int fd, const std::string& name, void* to, size_t bytes,
                              size_t* got) {
  const bool is_terminal = isatty(fd) != 0;
  for (;;) {
    if (interrupted()) return ExitStatus::interrupted();
    // Looks up now and then: a signal that comes just before poll() would not end it.
    constexpr int wait_ms = 100;
    struct pollfd readable = {fd, POLLIN, 0};
    const int ready = poll(&readable, 1, wait_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = is_terminal ? read_terminal(fd, to, bytes) : ::read(fd, to, bytes);
    if (n < 0 && (errno == EINTR || (is_terminal && errno == EAGAIN))) continue;
    if (n < 0) return ExitStatus::from_errno(errno, name, "read");
    *got = static_cast<size_t>(n);
    return {};
  }
}

}  // namespace stride::cli
