#include "adapters/cli/interrupt.h"

#include <signal.h>

#include <atomic>

namespace stride::cli {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void on_signal(int) { asked.store(true); }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  // Not restarted: a read that waits for a terminal or a pipe must come back.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return asked.load(std::memory_order_relaxed); }

void set_interrupted(bool value) { asked.store(value); }

}  // namespace stride::cli
