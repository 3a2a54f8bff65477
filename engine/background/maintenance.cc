#include "engine/background/maintenance.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "storage/no_throw.h"

namespace stride {
namespace {

using namespace std::chrono_literals;

constexpr auto first_flush_retry = 200ms;  // twice as long each time
constexpr auto last_flush_retry = 5s;
constexpr auto first_compaction_retry = 10s;  // the same, of each table
constexpr auto last_compaction_retry = 3600s;
// Bulk commits between small ones seal memtables of few rows.
constexpr uint64_t max_sealed = 8;
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
  const uint64_t seals = small_.seals();
  const bool is_half = bytes > small_.seal_above_bytes() / 2;
  if (!is_half && seals - counted_seals_ < max_sealed) return;
  const size_t sealed = count_sealed();
  counted_seals_ = seals - std::min<uint64_t>(sealed, seals);
  if (sealed == 0) return;
  if (!flush_failure().ok()) {
    if (bytes > small_.seal_above_bytes() && may_try_again()) Status ignored = flush_one();
    return;
  }
  if (!context_.options.background_work) return;
  if (is_half) pace(bytes);
  const bool is_full = bytes > small_.seal_above_bytes();
  if (!is_full && sealed < max_sealed) return;
  const size_t enough = is_full ? 1 : max_sealed;
  std::unique_lock lock(mutex_);
  if (flusher_.joinable()) {
    changed_.wait(lock,
                  [&] { return stopping_ || !flush_failure_.ok() || count_sealed() < enough; });
    return;
  }
  lock.unlock();
  Status ignored = flush_one();
}

// Whether a commit should try a flush that has failed: where it would fail otherwise, or the last
// attempt was a while ago.
bool Maintenance::may_try_again() const {
  if (small_.is_full()) return true;
  std::lock_guard lock(mutex_);
  return Clock::now() - flushed_at_ > first_flush_retry;
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
  owed_s_ =
      passed > 0.1 ? 0 : std::max(0.0, owed_s_ + static_cast<double>(grown) / allowed - passed);
  paced_bytes_ = bytes;
  paced_at_ = now;
  if (owed_s_ > 0.001)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(owed_s_, max_sleep_s)));
}

void Maintenance::after_commits(bool bulk, bool erased) {
  const uint64_t seals = small_.seals();
  const bool made = bulk || erased;
  if (!made && seals == seen_seals_) return;
  seen_seals_ = seals;
  if (!context_.options.background_work) {
    Status s;
    while (s.ok() && has_sealed()) s = flush_one();
    return;
  }
  if (!made && !has_sealed()) return;
  std::lock_guard lock(mutex_);
  if (bulk) last_bulk_ = Clock::now();
  look_for_compactions_ |= made;
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

// Flushes and compactions on threads of the application end too: they write files.
void Maintenance::stop() noexcept {
  std::thread flusher, compacter;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    flusher.swap(flusher_);
    compacter.swap(compacter_);
  }
  changed_.notify_all();
  if (flusher.joinable()) flusher.join();
  if (compacter.joinable()) compacter.join();
  std::scoped_lock ended(flush_mutex_, compaction_mutex_);
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
    if (version->sealed.empty() || stopping_) return Status();
    const auto begin = Clock::now();
    PendingEdit pending(unsynced_);
    pending.stop = &stopping_;
    auto run = flush_.build(*version, &pending);
    if (!run.ok()) return run.status();
    const uint64_t memory_bytes = version->sealed.back().memory_bytes;
    version.reset();
    expect_written(pending);
    std::lock_guard guard(commit_mutex_);
    STRIDE_TRY(versions_.writable());
    STRIDE_TRY(flush_.install(*run, &pending));
    note_flush(pending, Clock::now() - begin, memory_bytes);
    return Status();
  });
  std::lock_guard lock(mutex_);
  flush_failure_ = s;
  flushed_at_ = Clock::now();
  changed_.notify_all();
  return s;
}

// May throw std::bad_alloc, so that note_flush() does not.
void Maintenance::expect_written(const PendingEdit& pending) {
  std::lock_guard lock(mutex_);
  for (const SegmentRecord& added : pending.edit.added) written_.try_emplace(added.table, 0);
}

void Maintenance::note_flush(const PendingEdit& installed, Clock::duration took,
                             uint64_t memory_bytes) noexcept {
  std::lock_guard lock(mutex_);
  for (const SegmentRecord& added : installed.edit.added)
    if (auto found = written_.find(added.table); found != written_.end())
      found->second += added.bytes;
  look_for_compactions_ = true;
  if (memory_bytes > (1 << 20))
    flush_bytes_per_s_ = static_cast<double>(memory_bytes) / std::max(seconds(took), 1e-3);
}

void Maintenance::run_flushes() {
  std::unique_lock lock(mutex_);
  Clock::duration retry = first_flush_retry;
  while (!stopping_) {
    if (!has_sealed()) {
      changed_.wait(lock, [&] { return stopping_ || has_sealed(); });
      continue;
    }
    lock.unlock();
    Status s = flush_one();
    lock.lock();
    if (s.ok()) {
      retry = first_flush_retry;
      continue;
    }
    changed_.wait_for(lock, retry, [&] { return stopping_.load(); });
    retry = std::min<Clock::duration>(2 * retry, last_flush_retry);
  }
}

void Maintenance::run_compactions() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [&] { return stopping_ || look_for_compactions_; });
    if (stopping_) return;
    look_for_compactions_ = false;
    lock.unlock();
    bool later = false;
    const bool did = compact_one(&later);
    lock.lock();
    if (later && !did) changed_.wait_for(lock, bulk_pause / 4, [&] { return stopping_.load(); });
    look_for_compactions_ |= did || later;
  }
}

// A compaction that fails does no harm to what is there: reads say what is damaged, and the others
// go on.
bool Maintenance::compact_one(bool* later) {
  std::lock_guard compacting(compaction_mutex_);
  std::optional<Compaction> choice;
  Status s = no_throw([&] {
    STRIDE_TRY(check_writable());
    choice = choose(later);
    return choice ? compact(*choice) : Status();
  });
  if (!choice) return false;
  std::lock_guard lock(mutex_);
  auto failed = failures_.find(choice->table->id);
  if (s.ok() && failed != failures_.end()) failures_.erase(failed);
  if (s.ok()) return true;
  Status ignored = no_throw([&] {
    Failure& failure = failures_.try_emplace(choice->table->id).first->second;
    failure.wait = std::clamp<Clock::duration>(2 * failure.wait, first_compaction_retry,
                                               last_compaction_retry);
    failure.until = Clock::now() + failure.wait;
    return Status();
  });
  *later = true;
  return false;
}

// Where an input has gone meanwhile there is something else to choose.
Status Maintenance::compact(const Compaction& choice) {
  const uint64_t before = written(choice.table->id);
  PendingEdit merged(unsynced_);
  merged.stop = &stopping_;
  STRIDE_TRY(compactor_.merge(choice, &merged));
  std::lock_guard guard(commit_mutex_);
  STRIDE_TRY(versions_.writable());
  auto done = compactor_.install(choice, &merged);
  if (!done.ok()) return done.status();
  if (*done && choice.to_bottom) forget_written(choice.table->id, before);
  return {};
}

std::optional<Compaction> Maintenance::choose(bool* later) {
  auto version = versions_.current();
  const auto now = Clock::now();
  {
    std::lock_guard lock(mutex_);
    auto is_gone = [&](const auto& entry) { return !version->find(entry.first); };
    std::erase_if(written_, is_gone);
    std::erase_if(failures_, is_gone);
  }
  for (size_t i = 0; i < version->tables.size(); ++i) {
    const TableVersion& table = *version->tables[i];
    if (table.segments.empty()) continue;
    auto choice = choose_runs(*version, table, written(table.table->id));
    if (!choice) continue;
    std::lock_guard lock(mutex_);
    auto failed = failures_.find(table.table->id);
    const bool has_failed = failed != failures_.end() && now < failed->second.until;
    const bool loads = now - last_bulk_ < bulk_pause && count_runs(table.segments) < many_runs;
    if (!has_failed && !loads) return choice;
    *later = true;
  }
  return std::nullopt;
}

uint64_t Maintenance::written(uint32_t table) const {
  std::lock_guard lock(mutex_);
  auto found = written_.find(table);
  return found == written_.end() ? 0 : found->second;
}

void Maintenance::forget_written(uint32_t table, uint64_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  auto found = written_.find(table);
  if (found != written_.end()) found->second -= std::min(found->second, bytes);
}

// What is sealed meanwhile is left for another time.
Status Maintenance::compact_all() {
  uint64_t newest;
  {
    std::lock_guard guard(commit_mutex_);
    STRIDE_TRY(versions_.writable());
    STRIDE_TRY(small_.seal());
    newest = versions_.next_id();
  }
  auto has_older = [&] {
    auto version = versions_.current();
    return !version->sealed.empty() && version->sealed.back().run < newest;
  };
  while (has_older()) STRIDE_TRY(flush_one());
  std::lock_guard compacting(compaction_mutex_);
  std::map<uint32_t, uint64_t> before;
  {
    std::lock_guard lock(mutex_);
    before = written_;
  }
  STRIDE_TRY(compactor_.compact_all(commit_mutex_, &stopping_));
  for (const auto& [table, bytes] : before) forget_written(table, bytes);
  return {};
}

}  // namespace stride
