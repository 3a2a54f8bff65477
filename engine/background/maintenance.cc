#include "engine/background/maintenance.h"

#include <algorithm>
#include <system_error>
#include <tuple>
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
constexpr uint64_t min_measured_bytes = 1 << 20;
constexpr auto between_looks = 1s;  // for rows that have ended
// Rows of small commits that are sorted at once, in about a millisecond.
constexpr uint64_t rows_per_sort = 1 << 14;

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

Event event_of(const SealedMemtable& sealed) {
  uint64_t rows = 0;
  for (const auto& tail : sealed.rows->tails()) rows += tail->rows();
  return {.run = sealed.run, .rows = rows, .bytes_in = sealed.memory_bytes};
}

}  // namespace

// What is committed faster than it becomes runs waits: a little for each byte, from the middle of a
// memtable on, and at its end for the one before it to be a run.
void Maintenance::before_commits() {
  const uint64_t bytes = small_.memory_bytes();
  const uint64_t seals = small_.seals();
  const bool is_half = bytes > small_.seal_above_bytes() / 2;
  const double merges = merge_pace_.load(std::memory_order_relaxed);
  if (!is_half && merges == unpaced && seals - counted_seals_ < max_sealed) return;
  const size_t sealed = count_sealed();
  counted_seals_ = seals - std::min<uint64_t>(sealed, seals);
  if (sealed == 0 && merges == unpaced) return;
  const bool is_full = bytes > small_.seal_above_bytes();
  if (!flush_failure().ok()) {
    if (is_full && may_try_again()) Status ignored = flush_one();
    return;
  }
  if (!context_.options.background_work) return;
  const double flushes =
      sealed > 0 ? memtable_pace(bytes, small_.seal_above_bytes(), flush_rate()) : unpaced;
  const auto begin = Clock::now();
  pacer_.pace(small_.total_bytes(), std::min(flushes, merges));
  if (is_full || sealed >= max_sealed) await_flushes(is_full ? 1 : max_sealed);
  // The flush that failed meanwhile may have begun before there was space.
  if (is_full && small_.is_full() && !flush_failure().ok()) Status ignored = flush_one();
  monitor().waited_since(begin);
}

double Maintenance::flush_rate() const {
  std::lock_guard lock(mutex_);
  return flush_bytes_per_s_;
}

// Each may seal a memtable.
void Maintenance::before_bulk_commits(const WorkWatch* watch) {
  if (!context_.options.background_work || count_sealed() < max_sealed || !flush_failure().ok())
    return;
  const auto begin = Clock::now();
  await_flushes(max_sealed, watch);
  monitor().waited_since(begin);
}

void Maintenance::await_flushes(size_t sealed, const WorkWatch* watch) {
  std::unique_lock lock(mutex_);
  if (flusher_.joinable()) {
    auto over = [&] { return stopping_ || !flush_failure_.ok() || count_sealed() < sealed; };
    if (!watch) changed_.wait(lock, over);
    while (!changed_.wait_for(lock, 10ms, over) && !watch->is_stopped()) {
    }
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

void Maintenance::after_commits() {
  const uint64_t seals = small_.seals();
  const uint64_t rows = small_.rows();
  const bool sorts = context_.options.background_work && rows - seen_rows_ >= rows_per_sort;
  if (seals == seen_seals_ && !sorts) return;
  seen_seals_ = seals;
  if (sorts) seen_rows_ = rows;
  if (!context_.options.background_work) return flush_without_threads();
  if (!sorts && !has_sealed()) return;
  std::lock_guard lock(mutex_);
  sort_memtable_ |= sorts;
  start_threads();
  changed_.notify_all();
}

void Maintenance::look_behind() {
  if (!context_.options.background_work) return;
  std::lock_guard lock(mutex_);
  look_for_compactions();
  start_threads();
  changed_.notify_all();
}

// Few runs wait as long as those of a load that has paused, so that commands of a moment begin no
// merges that they do not end.
void Maintenance::look_at_backlog() {
  if (!context_.options.background_work || debt_bytes() == 0) return;
  {
    std::lock_guard lock(mutex_);
    last_bulk_ = Clock::now();
  }
  look_behind();
}

void Maintenance::after_bulk_commits() {
  if (!context_.options.background_work) return flush_without_threads();
  std::lock_guard lock(mutex_);
  last_bulk_ = Clock::now();
  look_for_compactions();
  start_threads();
  changed_.notify_all();
}

// Where the database is being closed flush_one() does nothing.
void Maintenance::flush_without_threads() {
  Status s;
  while (s.ok() && !stopping_ && has_sealed()) s = flush_one();
}

// Where the system gives no thread, the next commit asks again.
void Maintenance::start_threads() {
  if (stopping_ || lanes_.back().thread.joinable()) return;
  Status ignored = no_throw([&] {
    try {
      if (!flusher_.joinable()) flusher_ = std::thread([this] { run_flushes(); });
      for (size_t lane = 0; lane < lanes_.size(); ++lane)
        if (!lanes_[lane].thread.joinable())
          lanes_[lane].thread = std::thread([this, lane] { run_compactions(lane); });
    } catch (const std::system_error&) {
    }
    return Status();
  });
}

void Maintenance::look_for_compactions() noexcept {
  for (Lane& lane : lanes_) lane.look = true;
}

// Flushes and compactions on threads of the application end too: they write files.
void Maintenance::stop() noexcept {
  std::array<std::thread, 1 + std::tuple_size_v<decltype(lanes_)>> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    threads[0].swap(flusher_);
    for (size_t lane = 0; lane < lanes_.size(); ++lane) threads[1 + lane].swap(lanes_[lane].thread);
  }
  changed_.notify_all();
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
  std::scoped_lock ended(flush_mutex_, lanes_[0].mutex, lanes_[1].mutex);
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
  WatchedTask task(monitor(), /*flush=*/true);
  uint64_t bytes_out = 0;
  Status s = no_throw([&] {
    STRIDE_TRY(check_writable());
    auto version = versions_.current();
    if (version->sealed.empty() || stopping_) return Status();
    const auto begin = Clock::now();
    task.begin(event_of(version->sealed.back()));
    PendingEdit pending(unsynced_);
    pending.stop = &stopping_;
    auto run = flush_.build(*version, &pending);
    if (!run.ok()) return run.status();
    const uint64_t memory_bytes = version->sealed.back().memory_bytes;
    version.reset();
    expect_written(pending);
    STRIDE_TRY(unsynced_.sync_ahead());
    std::lock_guard guard(commit_mutex_);
    STRIDE_TRY(versions_.writable());
    STRIDE_TRY(flush_.install(*run, &pending));
    note_flush(pending, Clock::now() - begin, memory_bytes);
    bytes_out = pending.added_bytes();
    return Status();
  });
  task.end(s, bytes_out);
  if (s.ok()) update_pace();
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
  look_for_compactions();
  if (memory_bytes > min_measured_bytes)
    flush_bytes_per_s_ = static_cast<double>(memory_bytes) / std::max(seconds(took), 1e-3);
}

void Maintenance::run_flushes() {
  std::unique_lock lock(mutex_);
  Clock::duration retry = first_flush_retry;
  while (!stopping_) {
    changed_.wait(lock, [&] { return stopping_ || sort_memtable_ || has_sealed(); });
    if (std::exchange(sort_memtable_, false)) {
      lock.unlock();
      sort_memtable();
      lock.lock();
    }
    if (stopping_ || !has_sealed()) continue;
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

// What fails here is done by those who scan.
void Maintenance::sort_memtable() {
  Status ignored = no_throw([&] {
    auto version = versions_.current();
    return version->memtable ? version->memtable->sort(*version->executor) : Status();
  });
}

// Rows end without anybody's doing.
void Maintenance::await_look(Lane* lane, std::unique_lock<std::mutex>* lock) {
  auto over = [&] { return stopping_ || lane->look; };
  if (lane != &lanes_[0] || !context_.identity->clock.is_started())
    return changed_.wait(*lock, over);
  changed_.wait_for(*lock, between_looks, over);
}

void Maintenance::run_compactions(size_t lane) {
  Lane& own = lanes_[lane];
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    await_look(&own, &lock);
    if (stopping_) return;
    own.look = false;
    lock.unlock();
    bool later = false;
    const bool did = compact_one(lane, &later);
    lock.lock();
    if (later && !did) changed_.wait_for(lock, bulk_pause / 4, [&] { return stopping_.load(); });
    own.look |= did || later;
  }
}

// A compaction that fails does no harm to what is there: reads say what is damaged, and the others
// go on.
bool Maintenance::compact_one(size_t lane, bool* later) {
  Lane& own = lanes_[lane];
  std::lock_guard compacting(own.mutex);
  Status s = no_throw([&] {
    STRIDE_TRY(check_writable());
    return choose(lane, later) ? compact(*own.compaction) : Status();
  });
  std::optional<Compaction> done;
  {
    std::lock_guard choosing(choice_mutex_);
    done.swap(own.compaction);
  }
  if (!done) return false;
  if (s.ok()) update_pace();
  std::lock_guard lock(mutex_);
  // What it has merged may be a part of what is due in the other lane.
  look_for_compactions();
  changed_.notify_all();
  const uint32_t table = done->table->id;
  if (s.ok()) return failures_.erase(table), true;
  Status ignored = no_throw([&] {
    Failure& failure = failures_.try_emplace(table).first->second;
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
  auto done = compactor_.run(choice, commit_mutex_, &stopping_,
                             [&](Clock::duration took) { note_merge(choice, took); });
  if (!done.ok()) return done.status();
  if (*done && choice.to_bottom && !choice.of_erased) forget_written(choice.table->id, before);
  return {};
}

// What a merge of all that is due now would read, and what is sealed.
uint64_t Maintenance::debt_bytes() const {
  auto version = versions_.current();
  uint64_t bytes = 0;
  for (const SealedMemtable& sealed : version->sealed) bytes += sealed.memory_bytes;
  for (const auto& table : version->tables.all()) {
    if (table->segments.empty()) continue;
    const auto due = choose_runs(*version, *table, written(table->table->id));
    if (!due) continue;
    for (const auto& input : due->inputs) bytes += input->record().bytes;
  }
  return bytes;
}

void Maintenance::note_merge(const Compaction& merged, Clock::duration took) noexcept {
  uint64_t bytes = 0;
  for (const auto& input : merged.inputs) bytes += input->record().bytes;
  if (bytes < min_measured_bytes) return;
  std::lock_guard lock(mutex_);
  merge_bytes_per_s_ = static_cast<double>(bytes) / std::max(seconds(took), 1e-3);
}

bool Maintenance::choose(size_t lane, bool* later) {
  const Lane& other = lanes_[1 - lane];
  std::lock_guard choosing(choice_mutex_);
  if (lane > 0 && !other.compaction) return false;
  auto version = versions_.current();
  const auto now = Clock::now();
  {
    std::lock_guard lock(mutex_);
    auto is_gone = [&](const auto& entry) { return !version->find(entry.first); };
    std::erase_if(written_, is_gone);
    std::erase_if(failures_, is_gone);
  }
  const size_t first = version->index->position_behind(last_chosen_);
  for (size_t i = 0; i < version->tables.size(); ++i) {
    const TableVersion& table = *version->tables[(first + i) % version->tables.size()];
    if (table.segments.empty()) continue;
    auto choice = choose_in(*version, table, other);
    if (!choice) continue;
    std::lock_guard lock(mutex_);
    auto failed = failures_.find(table.table->id);
    const bool has_failed = failed != failures_.end() && now < failed->second.until;
    const bool loads = now - last_bulk_ < bulk_pause && count_runs(table.segments) < many_runs;
    if (!has_failed && !loads) {
      lanes_[lane].compaction = std::move(choice);
      last_chosen_ = table.table->id;
      // The second lane may have looked before the first one was busy.
      if (lane == 0) lanes_[1].look = true;
      changed_.notify_all();
      return true;
    }
    *later = true;
  }
  return false;
}

// Beside a merge into the bottom run, runs that have come since may be merged with each other.
std::optional<Compaction> Maintenance::choose_in(const Version& version, const TableVersion& table,
                                                 const Lane& other) const {
  const auto& beside = other.compaction;
  if (!beside || beside->table->id != table.table->id)
    return choose_runs(version, table, written(table.table->id));
  if (!beside->to_bottom) return std::nullopt;
  return choose_newer_runs(version, table, beside->inputs[0]->record().run);
}

void Maintenance::update_pace() {
  auto version = versions_.current();
  std::lock_guard lock(mutex_);
  double pace = unpaced;
  for (const auto& [table, bytes] : written_) {
    const TableVersion* found = version->find(table);
    if (!found || found->segments.empty()) continue;
    const uint64_t bottom = run_bytes(found->segments, (*found->segments.rbegin())->record().run);
    pace = std::min(pace, merge_pace({bottom, bytes}, merge_bytes_per_s_, flush_bytes_per_s_));
  }
  merge_pace_.store(pace, std::memory_order_relaxed);
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

// What is sealed meanwhile is left for another time. A flush is never long, so it is carried out to
// its end: later commits are told of one that fails.
Status Maintenance::flush_all() {
  WorkWatch* const watch = WorkWatch::current();
  const WorkWatch::Scope unwatched(nullptr);
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
  while (has_older()) {
    if (watch && watch->is_stopped()) return WorkWatch::cancelled();
    STRIDE_TRY(flush_one());
    if (stopping_) return Status(StatusCode::closed, "the database is being closed");
  }
  return {};
}

Status Maintenance::compact_all() {
  STRIDE_TRY(flush_all());
  // What is merged in the lanes may take long, so the wait for it can be given up.
  const WorkWatch never;
  const WorkWatch& watch = WorkWatch::current() ? *WorkWatch::current() : never;
  if (!lanes_[0].mutex.lock_unless_stopped(watch)) return WorkWatch::cancelled();
  const std::lock_guard first(lanes_[0].mutex, std::adopt_lock);
  if (!lanes_[1].mutex.lock_unless_stopped(watch)) return WorkWatch::cancelled();
  const std::lock_guard second(lanes_[1].mutex, std::adopt_lock);
  std::map<uint32_t, uint64_t> before;
  {
    std::lock_guard lock(mutex_);
    before = written_;
  }
  STRIDE_TRY(compactor_.compact_all(commit_mutex_, &stopping_));
  for (const auto& [table, bytes] : before) forget_written(table, bytes);
  update_pace();
  return {};
}

}  // namespace stride
