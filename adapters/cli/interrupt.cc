#include "adapters/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

namespace stride::cli {
namespace {

// After this one tells the user that Ctrl-C was heard.
constexpr unsigned patience_seconds = 1;

std::atomic<bool> asked{false}, asked_by_term{false}, on_terminal{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void on_signal(int signal) {
  asked.store(true);
  if (signal == SIGTERM) asked_by_term.store(true);
  if (signal == SIGINT) alarm(patience_seconds);
}

// A commit that has begun is finished, and that can take a while.
void on_alarm(int) {
  // On a terminal it takes the place of a progress bar, or of the ^C that is shown there.
  constexpr std::string_view text =
      "\r\x1b[Kstride: interrupted: ends as soon as the step that has begun is done, such as a "
      "commit; Ctrl-C again ends at once, and a commit is then there as a whole or not at all\n";
  constexpr size_t clears_line = 4;
  const std::string_view shown = text.substr(on_terminal.load() ? 0 : clears_line);
  const int error = errno;
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, shown.data(), shown.size());
  errno = error;
}

}  // namespace

void catch_interrupts() {
  alarm(0);
  on_terminal.store(isatty(STDERR_FILENO) != 0);
  struct sigaction action {};
  action.sa_handler = on_signal;
  // Not restarted: a read that waits for a terminal or a pipe must come back.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
}

bool interrupted() { return asked.load(std::memory_order_relaxed); }

bool terminated() { return asked_by_term.load(std::memory_order_relaxed); }

void set_interrupted(bool value) { asked.store(value); }

}  // namespace stride::cli
