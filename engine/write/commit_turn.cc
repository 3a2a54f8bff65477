#include "engine/write/commit_turn.h"

#include "engine/write/futex.h"

namespace stride {

CommitTurn::State CommitTurn::await(unsigned spins) noexcept {
  for (unsigned i = 0; i < spins; ++i) {
    if (uint32_t now = state_.load(std::memory_order_acquire); now != waiting)
      return static_cast<State>(now);
    spin_pause();
  }
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
