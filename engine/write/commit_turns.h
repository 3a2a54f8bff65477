// The order in which commits of many threads are carried out: who leads, and who waits.
//
//   uint32_t ticket = turns.arrive(&commit);
//   if (turns.await(ticket, commit, patience)) {       // leads; else another one has carried it
//   out
//     turns.collect(ticket, &group);                   // all that have arrived by now
//     ...
//     turns.end(ticket, group.size(), /*hand_over=*/true);
//   }
//
// A thread that arrives takes the next ticket and leaves its commit at the ticket's place. One word
// says which tickets are done, and whether the next one may lead; all who wait look at it, so that
// one store tells them all. Who leads reads the commits without looking for them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stride {

struct CommitRequest;

// Work of a thread that waits, which another one may do in its place.
class SharedWork {
 public:
  void offer() noexcept { state_.store(offered, std::memory_order_release); }
  // Whether the caller is to do it, and to call finish() then: the first who asks.
  bool take() noexcept {
    uint32_t now = state_.load(std::memory_order_relaxed);
    return now == offered && state_.compare_exchange_strong(now, taken, std::memory_order_acquire);
  }
  void finish() noexcept { state_.store(finished, std::memory_order_release); }
  // Precondition: it was offered.
  void await_finished() const noexcept;

 private:
  enum State : uint32_t { none, offered, taken, finished };
  std::atomic<uint32_t> state_{none};
};

class CommitTurns {
 public:
  // More wait for a place among them.
  static constexpr uint32_t max_waiting = 512;

  // first_ticket: even.
  explicit CommitTurns(uint32_t first_ticket = 0);

  // Returns the ticket.
  uint32_t arrive(CommitRequest* commit) noexcept;

  // How long a thread looks before it sleeps.
  struct Patience {
    unsigned spins = 0;
    std::chrono::microseconds yields{0};  // then it lets others run in between; if it has a core
  };
  // Returns whether it leads. Meanwhile it does the commit's shared work, if that is offered.
  bool await(uint32_t ticket, CommitRequest* commit, Patience patience) noexcept;

  // The rest is for the one that leads. first: the ticket that it leads with.

  // How many have arrived, its own included. Some of them may have left no commit yet.
  uint32_t arrived(uint32_t first) const noexcept {
    return (arrived_.load(std::memory_order_seq_cst) - first) / step;
  }
  // The commit at position i from there; null: it is not there yet.
  CommitRequest* peek(uint32_t first, uint32_t i) const noexcept {
    return place(first + i * step).load(std::memory_order_acquire);
  }
  // All that are there, in the order of their tickets.
  void collect(uint32_t first, std::vector<CommitRequest*>* group) noexcept;
  // The first `count` are done: their threads go on. Returns the ticket behind them, which leads if
  // hand_over; else the caller goes on to lead with it.
  uint32_t end(uint32_t first, uint32_t count, bool hand_over) noexcept;
  // The caller, which went on, leaves it to this ticket.
  void hand_over(uint32_t first) noexcept { tell(first | may_lead, first, 1); }

 private:
  // Tickets are even; the lowest bit of the word says whether the first that is not done may lead.
  static constexpr uint32_t step = 2, may_lead = 1;
  enum class Turn : uint8_t { waits, leads, done };

  std::atomic<CommitRequest*>& place(uint32_t ticket) noexcept {
    return places_[ticket / step % max_waiting];
  }
  const std::atomic<CommitRequest*>& place(uint32_t ticket) const noexcept {
    return places_[ticket / step % max_waiting];
  }
  Turn turn_of(uint32_t ticket, uint32_t word) const noexcept;
  void sleep(uint32_t ticket, uint32_t word) noexcept;
  // Stores the word and wakes so many from a ticket on, and the one behind them if it may lead.
  void tell(uint32_t word, uint32_t first, uint32_t count) noexcept;

  alignas(64) std::atomic<uint32_t> arrived_;  // the next ticket
  alignas(64) std::atomic<uint32_t> word_;     // the first that is not done, and may_lead
  std::atomic<uint32_t> sleepers_{0};
  alignas(64) std::array<std::atomic<CommitRequest*>, max_waiting> places_{};
};

}  // namespace stride
