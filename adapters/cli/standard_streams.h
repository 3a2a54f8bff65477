// What main() does before anything else.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace stride::cli {

// Where 0, 1 or 2 is closed, the next file that is opened gets that number, and what is printed
// goes into it. /dev/null takes the place, opened the wrong way round: reading the input and
// writing the outputs fail as they do of closed ones.
inline void hold_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    int opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened >= 0 && opened != fd) close(opened);
  }
}

// A file beyond `ulimit -f` is an error of the write, and not the end of the process.
inline void ignore_file_size_signal() { signal(SIGXFSZ, SIG_IGN); }

}  // namespace stride::cli
