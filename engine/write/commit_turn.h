// Where one thread waits until another has carried out its commit, or lets it lead the next group.
//
//   CommitTurn turn;                     // on the stack of the thread that waits
//   ... let the leader know of it ...
//   if (turn.await(patience) == CommitTurn::leads) ...
//
// Each thread has a place of its own, so that only those wake whose turn has come. A thread that
// has not gone to sleep yet sees its turn without a system call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stride {

class CommitTurn {
 public:
  enum State : uint32_t { waiting, asleep, leads, done };

  // How long a thread looks before it sleeps.
  struct Patience {
    unsigned spins = 0;
    std::chrono::microseconds yields{0};  // then it lets others run in between; if it has a core
  };
  // Returns `leads` or `done`.
  State await(Patience patience) noexcept;
  // Whether it takes a system call to give it its turn.
  bool is_asleep() const noexcept { return state_.load(std::memory_order_relaxed) == asleep; }
  // state: `leads` or `done`. The waiting thread may be gone with this when it returns.
  void give(State state) noexcept;

 private:
  bool spin(unsigned spins) const noexcept;
  bool yield(std::chrono::microseconds at_most) const noexcept;

  std::atomic<uint32_t> state_{waiting};
};

}  // namespace stride
