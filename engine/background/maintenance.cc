#include "engine/background/maintenance.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "storage/no_throw.h"

namespace stride {
namespace {

using namespace std::chrono_literals;

constexpr auto flush_retry = 200ms;
constexpr auto compaction_retry = 10s;
// Bulk loads are left alone until they have paused for so long, unless a table has many runs.
constexpr auto bulk_pause = 1s;
constexpr uint64_t many_runs = 24;
constexpr double max_sleep_s = 0.02;

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

// What is committed faster than it becomes runs waits: a little for each byte, from the middle of a
// memtable on, so that it fills about when the one before it is a run; and at its end for that.
void Maintenance::before_commits() {
  const uint64_t bytes = small_.memory_bytes();
  if (bytes <= small_.seal_above_bytes() / 2) return;
  if (!flush_failure().ok()) {
    if (bytes > small_.seal_above_bytes()) Status ignored = flush_one();
    return;
  }
  if (!context_.options.background_work || !has_sealed()) return;
  pace(bytes);
  if (bytes <= small_.seal_above_bytes()) return;
  std::unique_lock lock(mutex_);
  if (!flusher_.joinable()) {
    lock.unlock();
    Status ignored = flush_one();
    return;
  }
  changed_.wait(lock, [&] { return stopping_ || !flush_failure_.ok() || !has_sealed(); });
}

void Maintenance::pace(uint64_t bytes) {
  const auto now = Clock::now();
  double rate;
  {
    std::lock_guard lock(mutex_);
    rate = flush_bytes_per_s_;
  }
  const double half = static_cast<double>(small_.seal_above_bytes()) / 2;
  const double full = std::clamp(static_cast<double>(bytes) / half - 1, 0.0, 1.0);
  const double allowed = std::max(rate * 2 * (1 - full), rate / 16);
  const uint64_t grown = bytes > paced_bytes_ ? bytes - paced_bytes_ : 0;
  const double passed = seconds(now - paced_at_);
  // Where it was not paced lately, what came since is not counted.
  owed_s_ = passed > 0.1 ? 0 : std::max(0.0, owed_s_ + static_cast<double>(grown) / allowed - passed);
  paced_bytes_ = bytes;
  paced_at_ = now;
  if (owed_s_ > 0.001)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(owed_s_, max_sleep_s)));
}

void Maintenance::after_commits(bool bulk) {
  const uint64_t seals = small_.seals();
  if (!bulk && seals == seen_seals_) return;
  seen_seals_ = seals;
  if (!context_.options.background_work) {
    Status s;
    while (s.ok() && has_sealed()) s = flush_one();
    return;
  }
  if (!bulk && !has_sealed()) return;
  std::lock_guard lock(mutex_);
  if (bulk) last_bulk_ = Clock::now();
  look_for_compactions_ |= bulk;
  start_threads();
  changed_.notify_all();
}

// Where the system gives no thread, the next commit asks again.
void Maintenance::start_threads() {
  if (stopping_ || compacter_.joinable()) return;
  Status ignored = no_throw([&] {
    try {
      if (!flusher_.joinable()) flusher_ = std::thread([this] { run_flushes(); });
      compacter_ = std::thread([this] { run_compactions(); });
    } catch (const std::system_error&) {
    }
    return Status();
  });
}

void Maintenance::stop() noexcept {
  std::lock_guard stopping(stop_mutex_);
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (flusher_.joinable()) flusher_.join();
  if (compacter_.joinable()) compacter_.join();
}

Status Maintenance::flush_failure() const {
  std::lock_guard lock(mutex_);
  return flush_failure_;
}

Status Maintenance::check_writable() {
  std::lock_guard guard(commit_mutex_);
  return versions_.writable();
}

Status Maintenance::flush_one() {
  std::lock_guard flushing(flush_mutex_);
  Status s = no_throw([&] {
    STRIDE_TRY(check_writable());
    auto version = versions_.current();
    if (version->sealed.empty()) return Status();
    const auto begin = Clock::now();
    PendingEdit pending(unsynced_);
    auto run = flush_.build(*version, &pending);
    if (!run.ok()) return run.status();
    const uint64_t memory_bytes = version->sealed.back().memory_bytes;
    version.reset();
    std::lock_guard guard(commit_mutex_);
    STRIDE_TRY(versions_.writable());
    STRIDE_TRY(flush_.install(*run, &pending));
    note_flush(pending, Clock::now() - begin, memory_bytes);
    return Status();
  });
  std::lock_guard lock(mutex_);
  flush_failure_ = s;
  changed_.notify_all();
  return s;
}

void Maintenance::note_flush(const PendingEdit& installed, Clock::duration took,
                             uint64_t memory_bytes) {
  std::lock_guard lock(mutex_);
  for (const SegmentRecord& added : installed.edit.added) written_[added.table] += added.bytes;
  look_for_compactions_ = true;
  if (memory_bytes > (1 << 20))
    flush_bytes_per_s_ = static_cast<double>(memory_bytes) / std::max(seconds(took), 1e-3);
}

void Maintenance::run_flushes() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!has_sealed()) {
      changed_.wait(lock, [&] { return stopping_ || has_sealed(); });
      continue;
    }
    lock.unlock();
    Status s = flush_one();
    lock.lock();
    if (!s.ok()) changed_.wait_for(lock, flush_retry, [&] { return stopping_; });
  }
}

void Maintenance::run_compactions() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [&] { return stopping_ || look_for_compactions_; });
    if (stopping_) return;
    look_for_compactions_ = false;
    lock.unlock();
    bool wait = false;
    const bool did = compact_one(&wait);
    lock.lock();
    if (wait) changed_.wait_for(lock, bulk_pause / 4, [&] { return stopping_; });
    look_for_compactions_ |= did || wait;
  }
}

// A compaction that fails does no harm to what is there: reads say what is damaged, and the others
// go on.
bool Maintenance::compact_one(bool* wait) {
  std::lock_guard compacting(compaction_mutex_);
  std::optional<Compaction> choice;
  bool installed = false;
  Status s = no_throw([&] {
    STRIDE_TRY(check_writable());
    choice = choose(wait);
    if (!choice) return Status();
    const uint64_t before = written(choice->table->id);
    PendingEdit merged(unsynced_);
    STRIDE_TRY(compactor_.merge(*choice, &merged));
    std::lock_guard guard(commit_mutex_);
    STRIDE_TRY(versions_.writable());
    auto done = compactor_.install(*choice, &merged);
    if (!done.ok()) return done.status();
    installed = true;  // or there is something else to choose
    std::lock_guard lock(mutex_);
    if (*done && choice->to_bottom) written_[choice->table->id] -= before;
    return Status();
  });
  if (!s.ok() && choice) {
    std::lock_guard lock(mutex_);
    Status ignored = no_throw([&] {
      failed_[choice->table->id] = Clock::now();
      return Status();
    });
  }
  return installed;
}

std::optional<Compaction> Maintenance::choose(bool* wait) {
  auto version = versions_.current();
  const auto now = Clock::now();
  for (size_t i = 0; i < version->tables.size(); ++i) {
    const TableVersion& table = *version->tables[i];
    if (table.segments.size() < 2) continue;
    {
      std::lock_guard lock(mutex_);
      auto failed = failed_.find(table.table->id);
      if (failed != failed_.end() && now - failed->second < compaction_retry) continue;
    }
    auto choice = choose_runs(*version, table, written(table.table->id));
    if (!choice) continue;
    std::lock_guard lock(mutex_);
    if (now - last_bulk_ < bulk_pause && count_runs(table.segments) < many_runs) {
      *wait = true;
      continue;
    }
    return choice;
  }
  return std::nullopt;
}

uint64_t Maintenance::written(uint32_t table) const {
  std::lock_guard lock(mutex_);
  auto found = written_.find(table);
  return found == written_.end() ? 0 : found->second;
}

Status Maintenance::compact_all() {
  {
    std::lock_guard guard(commit_mutex_);
    STRIDE_TRY(versions_.writable());
    STRIDE_TRY(small_.seal());
  }
  while (has_sealed()) STRIDE_TRY(flush_one());
  std::lock_guard compacting(compaction_mutex_);
  STRIDE_TRY(compactor_.compact_all(commit_mutex_));
  std::lock_guard lock(mutex_);
  written_.clear();
  return {};
}

}  // namespace stride
