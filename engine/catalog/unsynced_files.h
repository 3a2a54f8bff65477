// Files of segments that edits name, and that were written and not yet synced. Threads in the
// background may still be writing some of them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/catalog/poison.h"
#include "storage/file.h"
#include "storage/log_writer.h"
#include "storage/segment.h"
#include "storage/status.h"

namespace stride {

// Thread-safe; but between reserve() and add() nobody else may add a segment.
class UnsyncedFiles {
 public:
  UnsyncedFiles(FileSystem& fs, std::string directory, Poison& poison)
      : fs_(fs), directory_(std::move(directory)), poison_(poison) {}

  // Makes room, so that so many calls of add() do not throw.
  void reserve(size_t segments);
  void add(std::shared_ptr<Segment> segment, std::string path) noexcept;
  // A file that is no segment.
  void add_file(std::string path);
  // A file that is there since an earlier opening. It is written again before it is synced: a sync
  // that failed then can have left the system with a copy that it takes for written.
  void add_found(std::string path);
  // These in place of all others, of a handle that only reads.
  void set_found(std::unordered_set<std::string> paths) {
    std::lock_guard lock(mutex_);
    found_ = std::move(paths);
  }
  // Those that were added so, and not synced since.
  std::unordered_set<std::string> found() const {
    std::lock_guard lock(mutex_);
    return found_;
  }
  // Removes a file that no edit came to name, synced or not.
  void discard(const Segment& segment) noexcept;

  // Ends what is written in the background; without `wait` only what has been written by now. logs:
  // writes them out, too. Poisons the handle and says why where a file never will be whole.
  Status finish_writes(bool wait, bool logs);
  // Makes all files durable, with their names. new_names: there are files of other names in the
  // directory, synced but for these. logs: these too, before them. Precondition:
  // finish_writes() was ok, with `wait` and the same logs.
  //
  // resource_exhausted: descriptors or memory were too short to open one of them. What is not
  // synced then stays here, and the next call syncs it; cancelled: so does that. Whatever else
  // fails poisons the handle.
  Status sync(bool new_names, bool logs);
  // Syncs what sync() would, as far as it is written, while others use this, but for syncs: so that
  // sync() has less to do, which is called under a lock. Fails as it does.
  Status sync_ahead();
  // A log that is written out and synced with the files, after those that were added before it.
  // May throw std::bad_alloc.
  void add_log(std::shared_ptr<LogWriter> log);
  void drop_log(uint64_t number) noexcept;
  bool has_unsynced_log() const;
  // The position at which the last log ends; nothing: there is none.
  std::optional<uint64_t> logs_end() const;
  Status sync_logs();

 private:
  // written_again: those of the paths that have to be.
  Status sync_files(const std::vector<std::string>& paths,
                    const std::unordered_set<std::string>& written_again);
  Status sync_file(const std::string& path, bool write_it_again);
  Status sync_directory();
  Status bring_logs(LogWriter::Reach reach);

  FileSystem& fs_;
  const std::string directory_;
  Poison& poison_;
  // Held while files are synced: after a sync that has failed the next one of the same file says
  // that all is well, so that none may come before the handle is poisoned. Locked before mutex_.
  std::mutex syncing_;
  mutable std::mutex mutex_;  // guards the lists
  std::vector<std::string> paths_;
  std::unordered_set<std::string> found_;                // some of these
  std::vector<std::shared_ptr<Segment>> being_written_;  // some of these
  std::vector<std::shared_ptr<LogWriter>> logs_;         // oldest first
};

}  // namespace stride
