#include "engine/memtable/tail_order.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace stride {
namespace {

// Runs of fewer than 256 rows, 4,096 rows, 65,536 rows and so on.
int level_of(const SortedRun& run) { return (std::bit_width(run.size() >> 8) + 3) / 4; }

void add_run(std::shared_ptr<const SortedRun> run,
             std::vector<std::shared_ptr<const SortedRun>>* newest_first) {
  size_t merged = 0;
  while (merged < newest_first->size() && level_of(*(*newest_first)[merged]) <= level_of(*run))
    run = SortedRun::merge(*run, *(*newest_first)[merged++]);
  newest_first->erase(newest_first->begin(),
                      newest_first->begin() + static_cast<ptrdiff_t>(merged));
  newest_first->insert(newest_first->begin(), std::move(run));
}

}  // namespace

Result<std::shared_ptr<const TailOrder::Runs>> TailOrder::get(Executor& executor,
                                                              const TableTail& tail,
                                                              uint32_t commit) {
  std::lock_guard lock(mutex_);
  if (runs_ && runs_->last_commit >= std::min(commit, tail.last_commit())) return runs_;
  auto next = runs_ ? std::make_shared<Runs>(*runs_) : std::make_shared<Runs>(tail);
  SortedRun::Rows added;
  while (const TailRow* row = next->end.next(commit)) added.push_back(row);
  if (!added.empty()) {
    next->tail_rows += added.size();
    next->last_commit = added.back()->commit.load(std::memory_order_relaxed);
    auto run = SortedRun::make(executor, std::move(added));
    if (!run.ok()) return run.status();
    add_run(std::move(*run), &next->newest_first);
  }
  runs_ = std::move(next);
  return runs_;
}

uint64_t TailOrder::unsorted(const TableTail& tail) {
  const uint64_t rows = tail.rows();
  std::lock_guard lock(mutex_);
  const uint64_t sorted = runs_ ? runs_->tail_rows : 0;
  return rows - std::min(rows, sorted);
}

// Merges without the lock: nobody waits for it.
Result<std::shared_ptr<const SortedRun>> TailOrder::get_one(Executor& executor,
                                                            const TableTail& tail,
                                                            uint32_t commit) {
  auto got = get(executor, tail, commit);
  if (!got.ok()) return got.status();
  const Runs& runs = **got;
  if (runs.newest_first.empty()) return std::shared_ptr<const SortedRun>();
  std::shared_ptr<const SortedRun> merged = runs.newest_first[0];
  for (size_t i = 1; i < runs.newest_first.size(); ++i)
    merged = SortedRun::merge(*merged, *runs.newest_first[i]);
  auto next = std::make_shared<Runs>(runs);
  next->newest_first.assign(1, merged);
  std::lock_guard lock(mutex_);
  if (runs_ == *got) runs_ = std::move(next);
  return merged;
}

}  // namespace stride
