// What goes on behind the commits: rows of memtables are sorted, sealed memtables become runs, and
// runs are merged.
//
//   maintenance.before_commits();                                // no lock; may wait
//   { std::lock_guard guard(commit_mutex); ... commit ... }
//   maintenance.after_commits();                                 // no lock
//
// Three threads, started when there is first something for them: one flushes, two merge, so that
// neither flushes nor merges of few rows wait for a long merge. They work without the commit lock
// and take it to install what they made.
// Without Options::background_work the commits make runs of their memtables themselves, and nothing
// is merged.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/background/pace.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "engine/merge/compaction.h"
#include "engine/write/memtable_flush.h"
#include "engine/write/small_commits.h"
#include "engine/write/turn_mutex.h"
#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

// Thread-safe, but for before_commits() and after_commits(), which one thread at a time may call.
// Lock order: flush mutex or lanes' mutexes, commit lock, mutex_.
class Maintenance {
 public:
  Maintenance(const DatabaseContext& context, VersionSet& versions, UnsyncedFiles& unsynced,
              SmallCommits& small, MemtableFlush& flush, Compactor& compactor,
              std::mutex& commit_mutex)
      : context_(context),
        versions_(versions),
        unsynced_(unsynced),
        small_(small),
        flush_(flush),
        compactor_(compactor),
        commit_mutex_(commit_mutex) {}
  ~Maintenance() { stop(); }

  // Slows commits down as far as memtables fill faster than they become runs.
  void before_commits();
  void after_commits();
  // The same for those that make runs themselves; any thread.
  // watch: null, or what ends the wait.
  void before_bulk_commits(const WorkWatch* watch);
  void after_bulk_commits();
  // The same for those that erased rows in place. Call, too, where rows have come to end: from then
  // on there is a look now and then.
  void look_behind();
  // Call after opening: what is due from before does not wait for the first flush. Throws
  // std::bad_alloc.
  void look_at_backlog();
  // Makes runs of all rows in memtables, and one run of each table. cancelled: the calling thread's
  // watch was stopped.
  Status compact_all();
  // Ends the threads, and what others do here. What they are at is given up.
  void stop() noexcept;
  // Why the last flush failed; ok: it did not.
  Status flush_failure() const;
  // StateMetrics::debt_bytes. Throws std::bad_alloc.
  uint64_t debt_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  Monitor& monitor() const { return *context_.identity->monitor; }
  double flush_rate() const;
  // Waits until fewer memtables are sealed.
  void await_flushes(size_t sealed, const WorkWatch* watch = nullptr);
  void flush_without_threads();
  bool may_try_again() const;
  size_t count_sealed() const { return versions_.current()->sealed.size(); }
  bool has_sealed() const { return count_sealed() > 0; }
  Status check_writable();
  Status flush_one();
  // Makes runs of all rows that are in memtables now.
  Status flush_all();
  void expect_written(const PendingEdit& pending);
  void note_flush(const PendingEdit& installed, Clock::duration took,
                  uint64_t memory_bytes) noexcept;
  void start_threads();
  void sort_memtable();
  void run_flushes();
  // Merges go on in two lanes: in the second one only what the first one is too busy for.
  struct Lane {
    TurnMutex mutex;  // held while it merges
    std::thread thread;
    bool look = false;                     // whether there may be something for it
    std::optional<Compaction> compaction;  // that goes on
  };
  // Requires mutex_.
  void look_for_compactions() noexcept;
  // Waits until there may be something for the lane. The same.
  void await_look(Lane* lane, std::unique_lock<std::mutex>* lock);
  void run_compactions(size_t lane);
  // Merges what is due in one table, if anything is. later: set where something is that must wait.
  bool compact_one(size_t lane, bool* later);
  // Enters what it chooses into the lane. Tables take turns: one in which there is always something
  // to merge does not keep the others waiting.
  bool choose(size_t lane, bool* later);
  std::optional<Compaction> choose_in(const Version& version, const TableVersion& table,
                                      const Lane& other) const;
  Status compact(const Compaction& choice);
  void note_merge(const Compaction& merged, Clock::duration took) noexcept;
  uint64_t written(uint32_t table) const;
  void forget_written(uint32_t table, uint64_t bytes) noexcept;
  // Measures what merges owe.
  void update_pace();

  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  SmallCommits& small_;
  MemtableFlush& flush_;
  Compactor& compactor_;
  std::mutex& commit_mutex_;

  std::mutex flush_mutex_;           // one flush at a time
  mutable std::mutex choice_mutex_;  // guards the compactions of the lanes; before mutex_
  mutable std::mutex mutex_;         // guards what follows
  std::condition_variable changed_;
  std::thread flusher_;
  std::array<Lane, 2> lanes_;
  uint32_t last_chosen_ = 0;  // the table of the last compaction; guarded by choice_mutex_
  std::atomic<bool> stopping_{false};
  bool sort_memtable_ = false;
  Status flush_failure_;
  Clock::time_point flushed_at_{};        // when a flush last ended, well or not
  std::map<uint32_t, uint64_t> written_;  // by table: since all was merged, in bytes
  struct Failure {
    Clock::duration wait{};  // so long, until then
    Clock::time_point until{};
  };
  std::map<uint32_t, Failure> failures_;  // tables whose last compaction has failed
  Clock::time_point last_bulk_{};
  double flush_bytes_per_s_ = 64e6, merge_bytes_per_s_ = 0;
  std::atomic<double> merge_pace_{unpaced};

  // These belong to the thread that commits.
  uint64_t counted_seals_ = 0;
  uint64_t seen_rows_ = 0;
  uint64_t seen_seals_ = UINT64_MAX;  // so the first commit looks at what was there before
  Pacer pacer_;
};

}  // namespace stride
