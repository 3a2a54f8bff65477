#include "engine/write/commit_queue.h"

#include <algorithm>
#include <new>

#include "storage/no_throw.h"

namespace stride {

void CommitQueue::enter(const Staging* staging) {
  std::lock_guard lock(mutex_);
  open_[staging] = {};
  changed_.notify_all();
}

void CommitQueue::leave(const Staging* staging) {
  std::lock_guard lock(mutex_);
  open_.erase(staging);
  changed_.notify_all();
}

uint64_t CommitQueue::busy_siblings() {
  uint64_t busy = 0;
  for (auto& [staging, open] : open_) {
    uint64_t rows = staging->rows();
    busy += !open.waiting && rows != open.rows;
    open.rows = rows;
  }
  return busy;
}

void CommitQueue::wait_for_siblings(std::unique_lock<std::mutex>& lock, const Staging* leader) {
  using std::chrono::microseconds;
  auto wait = std::min<Clock::duration>(microseconds(leader->bytes() / wait_bytes_per_us), max_wait);
  auto linger = std::min<Clock::duration>(microseconds(leader->bytes() / linger_bytes_per_us), wait);
  // Siblings are given up when none of them stages anything for a while. A thread can be off its
  // core for some milliseconds, which is no reason to give it up.
  auto patience = std::max<Clock::duration>(wait / 2, std::chrono::milliseconds(5));
  auto all_here = [&] { return open_.size() <= waiting_.size(); };
  auto deadline = Clock::now() + wait;
  busy_siblings();
  for (auto now = Clock::now(); now < deadline; now = Clock::now()) {
    if (all_here()) {
      // Each arrival makes another one likely.
      size_t seen = waiting_.size();
      auto arrival = [&] { return !all_here() || waiting_.size() != seen; };
      if (!changed_.wait_until(lock, std::min(deadline, now + linger), arrival)) return;
    } else if (!changed_.wait_until(lock, std::min(deadline, now + patience), all_here)) {
      if (busy_siblings() == 0) return;
    }
  }
}

Status CommitQueue::commit(CommitRequest* request, const CarryOut& carry_out) {
  std::unique_lock lock(mutex_);
  try {
    waiting_.push_back(request);
  } catch (const std::bad_alloc&) {
    open_.erase(request->staging);
    changed_.notify_all();
    return Status::out_of_memory();
  }
  if (auto found = open_.find(request->staging); found != open_.end()) found->second.waiting = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return request->done || !leading_; });
  if (request->done) return request->status;

  leading_ = true;
  wait_for_siblings(lock, request->staging);
  std::vector<CommitRequest*> group = std::move(waiting_);
  waiting_.clear();
  for (CommitRequest* r : group) open_.erase(r->staging);
  lock.unlock();
  Status failure = no_throw([&] {
    carry_out(group);
    return Status();
  });
  lock.lock();
  for (CommitRequest* r : group) {
    if (!r->answered) r->answer(failure);
    r->done = true;
  }
  leading_ = false;
  changed_.notify_all();
  return request->status;
}

}  // namespace stride
