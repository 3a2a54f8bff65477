#include "engine/write/commit_turn.h"

#include <thread>

#include "engine/write/futex.h"

namespace stride {

namespace {

std::atomic<unsigned> yielding{0};

}  // namespace

bool CommitTurn::spin(unsigned spins) const noexcept {
  for (unsigned i = 0; i < spins; ++i) {
    if (state_.load(std::memory_order_acquire) != waiting) return true;
    spin_pause();
  }
  return false;
}

// To be woken takes some ten times as long as a commit of one row, so that threads which sleep
// between their commits wait for each other most of the time. With more such threads than cores it
// is better to sleep: the one that is waited for needs a core, too.
bool CommitTurn::yield(std::chrono::microseconds at_most) const noexcept {
  static const unsigned cores = std::thread::hardware_concurrency();
  static const unsigned max_yielding = cores < 4 ? 0 : cores - 1;
  bool done = false;
  if (yielding.fetch_add(1, std::memory_order_relaxed) < max_yielding) {
    const auto end = std::chrono::steady_clock::now() + at_most;
    do {
      std::this_thread::yield();
      done = state_.load(std::memory_order_acquire) != waiting;
    } while (!done && std::chrono::steady_clock::now() < end);
  }
  yielding.fetch_sub(1, std::memory_order_relaxed);
  return done;
}

CommitTurn::State CommitTurn::await(Patience patience) noexcept {
  if (spin(patience.spins) || (patience.yields.count() > 0 && yield(patience.yields)))
    return static_cast<State>(state_.load(std::memory_order_relaxed));
  uint32_t now = waiting;
  if (!state_.compare_exchange_strong(now, asleep, std::memory_order_acquire))
    return static_cast<State>(now);
  do {
    futex_wait(state_, asleep);
    now = state_.load(std::memory_order_acquire);
  } while (now == asleep);
  return static_cast<State>(now);
}

void CommitTurn::give(State state) noexcept {
  if (state_.exchange(state, std::memory_order_acq_rel) == asleep) futex_wake(&state_);
}

}  // namespace stride
