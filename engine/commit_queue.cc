#include "engine/commit_queue.h"

#include <algorithm>

namespace stride {

void CommitQueue::enter(const Staging* staging) {
  std::lock_guard lock(mutex_);
  open_[staging] = {Clock::now(), 0, false};
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
  auto now = Clock::now();
  auto found = open_.find(leader);
  if (found == open_.end() || open_.size() == waiting_.size()) return;
  auto staged_for = std::min<Clock::duration>(now - found->second.since, max_wait);
  auto deadline = now + staged_for;
  // A sibling is given up when it stages nothing for a tenth of the longest wait.
  auto patience = std::max<Clock::duration>(staged_for / 10, std::chrono::microseconds(100));
  busy_siblings();
  while (now < deadline && open_.size() > waiting_.size()) {
    auto look_again = std::min(deadline, now + patience);
    changed_.wait_until(lock, look_again, [&] { return open_.size() <= waiting_.size(); });
    now = Clock::now();
    if (now >= look_again && busy_siblings() == 0) return;
  }
}

Status CommitQueue::commit(CommitRequest* request, const CarryOut& carry_out) {
  std::unique_lock lock(mutex_);
  waiting_.push_back(request);
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
  carry_out(group);
  lock.lock();
  for (CommitRequest* r : group) r->done = true;
  leading_ = false;
  changed_.notify_all();
  return request->status;
}

}  // namespace stride
