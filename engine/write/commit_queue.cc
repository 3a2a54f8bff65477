#include "engine/write/commit_queue.h"

#include <algorithm>
#include <new>

#include "engine/write/futex.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

// About as long as a commit that does not wait for the disk: longer than it takes to be woken it is
// not worth to look.
constexpr unsigned spins = 64;
// Some groups.
constexpr CommitTurns::Patience unsynced_patience{spins, std::chrono::microseconds(100)};
// A thread that leads does so for the next group as well, where that one's first sleeps, because to
// be woken takes longer than a group; but its own commit has been answered, so not for long.
constexpr std::chrono::microseconds max_lead{100};
constexpr std::chrono::milliseconds max_return{2};
// Where nobody came back in time, so many groups do not wait.
constexpr unsigned groups_between_tries = 15;
// Two or three take turns: while one waits for the disk, the other one comes back.
constexpr uint32_t min_returning = 4;

}  // namespace

void CommitQueue::enter(OpenTransaction* open) noexcept {
  std::lock_guard lock(mutex_);
  open->next = open_;
  if (open_) open_->previous = open;
  open_ = open;
  ++staging_;
  changed_.notify_all();
}

void CommitQueue::unlink(OpenTransaction* open) noexcept {
  (open->previous ? open->previous->next : open_) = open->next;
  if (open->next) open->next->previous = open->previous;
}

void CommitQueue::leave(OpenTransaction* open) noexcept {
  std::lock_guard lock(mutex_);
  unlink(open);
  --staging_;
  changed_.notify_all();
}

void CommitQueue::begin_waiting(OpenTransaction* open) noexcept {
  std::lock_guard lock(mutex_);
  open->waiting = true;
  --staging_;
  ++waiting_;
  changed_.notify_all();
}

void CommitQueue::forget_group() noexcept {
  std::unique_lock lock(mutex_, std::defer_lock);
  for (CommitRequest* request : group_) {
    if (!request->open) continue;
    if (!lock) lock.lock();
    unlink(request->open);
    --waiting_;
  }
}

uint64_t CommitQueue::busy_siblings() noexcept {
  uint64_t busy = 0;
  for (OpenTransaction* open = open_; open; open = open->next) {
    const uint64_t rows = open->staging->rows();
    busy += !open->waiting && rows != open->rows;
    open->rows = rows;
  }
  return busy;
}

void CommitQueue::wait_for_siblings(const Staging* leader) {
  using std::chrono::microseconds;
  auto wait =
      std::min<Clock::duration>(microseconds(leader->bytes() / wait_bytes_per_us), max_wait);
  auto linger =
      std::min<Clock::duration>(microseconds(leader->bytes() / linger_bytes_per_us), wait);
  // Siblings are given up when none of them stages anything for a while. A thread can be off its
  // core for some milliseconds, which is no reason to give it up.
  auto patience = std::max<Clock::duration>(wait / 2, std::chrono::milliseconds(5));
  std::unique_lock lock(mutex_);
  auto all_here = [&] { return staging_ == 0; };
  auto deadline = Clock::now() + wait;
  busy_siblings();
  for (auto now = Clock::now(); now < deadline; now = Clock::now()) {
    if (all_here()) {
      // Each arrival makes another one likely.
      const uint64_t seen = waiting_;
      auto arrival = [&] { return !all_here() || waiting_ != seen; };
      if (!changed_.wait_until(lock, std::min(deadline, now + linger), arrival)) return;
    } else if (!changed_.wait_until(lock, std::min(deadline, now + patience), all_here)) {
      if (busy_siblings() == 0) return;
    }
  }
}

Status CommitQueue::commit(CommitRequest* request, const CarryOut& carry_out) {
  if (request->open) begin_waiting(request->open);
  // Who waits for the disk waits for long.
  const CommitTurns::Patience patience =
      request->durability == Durability::sync ? CommitTurns::Patience() : unsynced_patience;
  const uint32_t ticket = join(request);
  if (turns_.await(ticket, request, patience)) lead(ticket, request, carry_out);
  return std::move(request->status);
}

uint32_t CommitQueue::join(CommitRequest* request) noexcept {
  const uint32_t ticket = turns_.arrive(request);
  uint32_t awaited = awaited_.load(std::memory_order_seq_cst);
  while (awaited != 0 && !awaited_.compare_exchange_weak(awaited, awaited - 1)) {
  }
  if (awaited == 1) futex_wake(awaited_);
  return ticket;
}

void CommitQueue::lead(uint32_t first, const CommitRequest* own, const CarryOut& carry_out) {
  // One that waits for the disk takes longer than to be woken.
  const bool may_go_on = own->durability != Durability::sync;
  Clock::time_point deadline{};
  for (;;) {
    carry_out_group(first, carry_out);
    const auto count = static_cast<uint32_t>(group_.size());
    const CommitRequest* next = turns_.peek(first, count);
    bool goes_on = may_go_on && next && next->asleep.load(std::memory_order_relaxed);
    if (goes_on) {
      const auto now = Clock::now();
      if (deadline == Clock::time_point()) deadline = now + max_lead;
      goes_on = now < deadline && are_quick(first, count);
    }
    first = turns_.end(first, count, /*hand_over=*/!goes_on);
    if (!goes_on) return;
  }
}

void CommitQueue::carry_out_group(uint32_t first, const CarryOut& carry_out) {
  const CommitRequest* leader = turns_.peek(first, 0);
  const bool syncs = leader->durability == Durability::sync;
  if (leader->open) wait_for_siblings(leader->staging);
  if (syncs) wait_for_returning(first);
  turns_.collect(first, &group_);
  forget_group();
  const auto begin = syncs ? Clock::now() : Clock::time_point();
  const Status failure = no_throw([&] {
    carry_out(group_);
    return Status();
  });
  if (syncs) expect_returning(first, begin);
  for (CommitRequest* request : group_)
    if (!request->answered) request->answer(failure);
}

bool CommitQueue::are_quick(uint32_t first, uint32_t done) const noexcept {
  for (uint32_t i = done; const CommitRequest* r = turns_.peek(first, i); ++i)
    if (r->durability == Durability::sync || r->open) return false;
  return true;
}

void CommitQueue::expect_returning(uint32_t first, Clock::time_point begin) noexcept {
  const auto now = Clock::now();
  expected_ = turns_.arrived(first);
  if (expected_ < min_returning) expected_ = 0;
  expected_until_ = now + std::min<Clock::duration>((now - begin) / 4, max_return);
}

void CommitQueue::wait_for_returning(uint32_t first) noexcept {
  if (without_waiting_ > 0) {
    --without_waiting_;
    return;
  }
  const uint32_t before = turns_.arrived(first);
  uint32_t arrived = before;
  for (unsigned i = 0; i < spins && arrived < expected_; ++i, arrived = turns_.arrived(first))
    spin_pause();
  while (arrived < expected_) {
    const auto left = expected_until_ - Clock::now();
    if (left.count() <= 0) break;
    // Who arrives now has been counted, or sees that it is awaited.
    awaited_.store(expected_ - arrived, std::memory_order_seq_cst);
    const uint32_t missing = awaited_.load(std::memory_order_relaxed);
    if (turns_.arrived(first) == arrived && missing != 0) futex_wait(awaited_, missing, left);
    awaited_.store(0, std::memory_order_relaxed);
    arrived = turns_.arrived(first);
  }
  if (arrived == before && before < expected_) without_waiting_ = groups_between_tries;
}

}  // namespace stride
