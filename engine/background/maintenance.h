// What goes on behind the commits: sealed memtables become runs, and runs are merged.
//
//   maintenance.before_commits();                                // no lock; may wait
//   { std::lock_guard guard(commit_mutex); ... commit ... }
//   maintenance.after_commits(/*bulk=*/false, /*erased=*/false);  // no lock
//
// Two threads, for flushes must not wait for a long merge; each is started when there is first
// something for it. Both work without the commit lock and take it to install what they made.
// Without Options::background_work the commits make runs of their memtables themselves, and nothing
// is merged.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/catalog/database_context.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "engine/merge/compaction.h"
#include "engine/write/memtable_flush.h"
#include "engine/write/small_commits.h"
#include "storage/status.h"

namespace stride {

// Thread-safe, but for before_commits() and after_commits(), which one thread at a time may call.
// Lock order: flush or compaction mutex, commit lock, mutex_.
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
  // bulk: among them was one that made a run itself.
  // erased: one that erased rows in place.
  void after_commits(bool bulk, bool erased);
  // Makes runs of all rows in memtables, and one run of each table.
  Status compact_all();
  // Ends the threads, and what others do here. What they are at is given up.
  void stop() noexcept;
  // Why the last flush failed; ok: it did not.
  Status flush_failure() const;

 private:
  using Clock = std::chrono::steady_clock;
  void pace(uint64_t memtable_bytes);
  bool may_try_again() const;
  size_t count_sealed() const { return versions_.current()->sealed.size(); }
  bool has_sealed() const { return count_sealed() > 0; }
  Status check_writable();
  Status flush_one();
  void expect_written(const PendingEdit& pending);
  void note_flush(const PendingEdit& installed, Clock::duration took,
                  uint64_t memory_bytes) noexcept;
  void start_threads();
  void run_flushes();
  void run_compactions();
  // Merges what is due in one table, if anything is. later: set where something is that must wait.
  bool compact_one(bool* later);
  std::optional<Compaction> choose(bool* later);
  Status compact(const Compaction& choice);
  uint64_t written(uint32_t table) const;
  void forget_written(uint32_t table, uint64_t bytes) noexcept;

  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  SmallCommits& small_;
  MemtableFlush& flush_;
  Compactor& compactor_;
  std::mutex& commit_mutex_;

  std::mutex flush_mutex_, compaction_mutex_;  // one flush and one compaction at a time
  mutable std::mutex mutex_;                   // guards what follows
  std::condition_variable changed_;
  std::thread flusher_, compacter_;
  std::atomic<bool> stopping_{false};
  bool look_for_compactions_ = false;
  Status flush_failure_;
  Clock::time_point flushed_at_{};        // when a flush last ended, well or not
  std::map<uint32_t, uint64_t> written_;  // by table: since all was merged, in bytes
  struct Failure {
    Clock::duration wait{};  // so long, until then
    Clock::time_point until{};
  };
  std::map<uint32_t, Failure> failures_;  // tables whose last compaction has failed
  Clock::time_point last_bulk_{};
  double flush_bytes_per_s_ = 64e6;

  // These belong to the thread that commits.
  uint64_t counted_seals_ = 0;
  uint64_t seen_seals_ = UINT64_MAX;  // so the first commit looks at what was there before
  uint64_t paced_bytes_ = 0;
  double owed_s_ = 0;
  Clock::time_point paced_at_{};
};

}  // namespace stride
