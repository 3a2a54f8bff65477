#include "engine/write/commit_turns.h"

#include <bit>
#include <thread>

#include "engine/write/commit_queue.h"
#include "engine/write/futex.h"
#include "storage/prefetch.h"

namespace stride {

namespace {

std::atomic<unsigned> yielding{0};

// Until look() says so, for so long at most. To be woken takes some ten times as long as a commit
// of one row, so that threads which sleep between their commits wait for each other most of the
// time. With more such threads than cores it is better to sleep: the one that is waited for needs a
// core, too.
template <class Look>
bool yield_until(const Look& look, std::chrono::microseconds at_most) noexcept {
  static const unsigned cores = std::thread::hardware_concurrency();
  static const unsigned max_yielding = cores < 4 ? 0 : cores - 1;
  bool done = false;
  if (yielding.fetch_add(1, std::memory_order_relaxed) < max_yielding) {
    const auto end = std::chrono::steady_clock::now() + at_most;
    do {
      std::this_thread::yield();
      done = look();
    } while (!done && std::chrono::steady_clock::now() < end);
  }
  yielding.fetch_sub(1, std::memory_order_relaxed);
  return done;
}

// Tickets wake only those who sleep for them: bits of a futex. Where more wait than there are bits,
// some wake in vain.
uint32_t bits_of(uint32_t number, uint32_t count) {
  return count >= 32 ? ~0U : std::rotl((1U << count) - 1, static_cast<int>(number % 32));
}

}  // namespace

void SharedWork::await_finished() const noexcept {
  for (unsigned spins = 0; state_.load(std::memory_order_acquire) != finished; ++spins) {
    if (spins < 1000)
      spin_pause();
    else
      std::this_thread::yield();
  }
}

CommitTurns::CommitTurns(uint32_t first_ticket)
    : arrived_(first_ticket), word_(first_ticket | may_lead) {}

CommitTurns::Turn CommitTurns::turn_of(uint32_t ticket, uint32_t word) const noexcept {
  const auto ahead = static_cast<int32_t>((word & ~may_lead) - ticket);  // tickets start again at 0
  if (ahead > 0) return Turn::done;
  return ahead == 0 && (word & may_lead) ? Turn::leads : Turn::waits;
}

uint32_t CommitTurns::arrive(CommitRequest* commit) noexcept {
  const uint32_t ticket = arrived_.fetch_add(step, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t word = word_.load(std::memory_order_acquire);
    if (ticket - (word & ~may_lead) < max_waiting * step) break;
    sleep(ticket - max_waiting * step, word);  // whose place it takes
  }
  place(ticket).store(commit, std::memory_order_release);
  return ticket;
}

bool CommitTurns::await(uint32_t ticket, CommitRequest* commit, Patience patience) noexcept {
  Turn turn = Turn::waits;
  auto look = [&] {
    turn = turn_of(ticket, word_.load(std::memory_order_acquire));
    if (turn != Turn::waits) return true;
    if (commit->insertion.take()) {
      commit->rows.insert(commit->number);
      commit->insertion.finish();
    }
    return false;
  };
  for (unsigned i = 0; i <= patience.spins; ++i) {
    if (look()) return turn == Turn::leads;
    spin_pause();
  }
  if (patience.yields.count() > 0 && yield_until(look, patience.yields)) return turn == Turn::leads;
  commit->asleep.store(true, std::memory_order_relaxed);
  for (;;) {
    const uint32_t word = word_.load(std::memory_order_acquire);
    turn = turn_of(ticket, word);
    if (turn != Turn::waits) return turn == Turn::leads;
    sleep(ticket, word);
  }
}

// Who tells of a change sees that somebody sleeps, or the system sees the change.
void CommitTurns::sleep(uint32_t ticket, uint32_t word) noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex_wait_bits(word_, word, bits_of(ticket / step, 1));
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void CommitTurns::collect(uint32_t first, std::vector<CommitRequest*>* group) noexcept {
  group->clear();
  for (uint32_t ticket = first; group->size() < max_waiting; ticket += step) {
    CommitRequest* commit = place(ticket).load(std::memory_order_acquire);
    if (!commit) break;
    for (size_t line = 0; line < sizeof *commit; line += 64)
      prefetch(reinterpret_cast<const std::byte*>(commit) + line);
    place(ticket).store(nullptr, std::memory_order_relaxed);
    group->push_back(commit);
  }
}

uint32_t CommitTurns::end(uint32_t first, uint32_t count, bool hand_over) noexcept {
  const uint32_t next = first + count * step;
  tell(hand_over ? next | may_lead : next, first, count);
  return next;
}

// The next one first: it has work to do.
void CommitTurns::tell(uint32_t word, uint32_t first, uint32_t count) noexcept {
  word_.store(word, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  if (word & may_lead) futex_wake_bits(word_, bits_of(word / step, 1));
  futex_wake_bits(word_, bits_of(first / step, count));
}

}  // namespace stride
