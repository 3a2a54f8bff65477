// A database that this process has open for writing, and how many handles have it.
//
//   std::shared_ptr<DatabaseImpl> impl;
//   std::shared_ptr<SharedDatabase> shared;
//   STRIDE_TRY(SharedDatabase::open(path, options, &impl, &shared));
//   ...
//   Status s = shared->close();   // one handle less; the last one closes the database
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/options.h"
#include "storage/status.h"

namespace stride {

class DatabaseImpl;

// Whether both paths lead to one directory, as far as that can be told. file_system: as of Options.
bool is_same_directory(const std::string& a, const std::string& b, FileSystem* file_system);

// Thread-safe.
class SharedDatabase {
 public:
  // Opens the database, or finds it where this process has it open. *shared: null where the handle
  // is a view of its own, because it is read_only. Fails as Database::open().
  static Status open(const std::string& path, const Options& options,
                     std::shared_ptr<DatabaseImpl>* impl, std::shared_ptr<SharedDatabase>* shared);
  // Each handle once. What was committed is durable then, also where others stay open.
  Status close();
  bool is_open() const { return handles_.load(std::memory_order_acquire) > 0; }

 private:
  // Waits for others, but not in a listener, for which they may wait. locked.
  Status lock(const std::string& path, std::unique_lock<std::mutex>* guard);
  // These two require the lock.
  Status open_here(const std::string& path, const Options& options,
                   std::shared_ptr<DatabaseImpl>* impl);
  // Whether the directory is not the one any more that was opened: it was removed, or moved.
  bool is_gone(const std::string& path);

  std::mutex mutex_;                    // held while the database is opened or closed
  std::shared_ptr<DatabaseImpl> impl_;  // null: it is not open
  std::atomic<uint64_t> handles_{0};
};

}  // namespace stride
