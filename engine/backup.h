// Copies of a whole database: checkpoints, backups, and databases that are restored from these.
//
//   Status s = db->checkpoint("/snapshots/today", {}, nullptr);   // a database of its own, at once
//   s = db->backup("/backups/app", {}, nullptr);                  // copies what is not there yet
//   s = restore("/backups/app", "/var/lib/app/db", {}, nullptr);  // a database again
//
// docs/backup.md says what each of them is for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class FileSystem;

// How far a copy is.
struct CopyProgress {
  uint64_t files = 0, total_files = 0;  // that are done, of those that are copied or linked
  uint64_t bytes = 0, total_bytes = 0;  // that are written, of those that are copied
};

struct CopyOptions {
  // Watches the copy, and ends it where it returns false: the call is `cancelled` then, some tenths
  // of a second later. Called by the thread that makes the call, before anything is done and then
  // at least every 50 ms until it has returned false or the call ends. Another thread does the
  // work, so that it may use the database. An exception counts as false, and becomes a part of the
  // status.
  std::function<bool(const CopyProgress&)> progress{};
};

struct CopyReport {
  uint64_t files = 0, bytes = 0;                // of the copy
  uint64_t copied_files = 0, copied_bytes = 0;  // of these: written by this call
  uint64_t linked_files = 0;                    // of these: other names of the database's own files
};

// Makes a database of a backup: of all that was committed when that was made. Every byte is checked
// as it is copied. new_directory must not be there. The database has the identity of the one that
// was backed up, and may be backed up in its place. report: null, or what was done.
//
// file_system: null, FileSystem::posix(). not_found: there is no backup, or the first one has not
// come to its end. already_exists: new_directory is there. corruption: a file of the backup is
// damaged or missing, which the status names. unavailable: another backup was completed meanwhile;
// call it again. no_space, io_error, permission_denied, cancelled. Where it fails nothing is left
// of new_directory, or what can be opened by no means, after a power loss.
STRIDE_API Status restore(const std::string& backup_directory, const std::string& new_directory,
                          const CopyOptions& options = {}, CopyReport* report = nullptr,
                          FileSystem* file_system = nullptr);

}  // namespace stride
