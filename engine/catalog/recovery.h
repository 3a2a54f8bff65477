// Reads what a database's directory holds when it is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/version.h"
#include "engine/memtable/log_replay.h"
#include "storage/manifest.h"
#include "storage/manifest_follower.h"
#include "storage/status.h"

namespace stride {

struct RecoveredDatabase {
  std::unique_ptr<Manifest> manifest;  // null where read_only
  std::shared_ptr<const Version> version;
  uint32_t identity = 0;  // Manifest::Recovered
  uint64_t next_id = 1;
  bool has_unsynced_edits = false;  // the manifest ends with some
  std::vector<LogRecord> logs;      // that the manifest names
  ReplayedLogs replayed;            // the same
  // Logs that unsynced edits have given up. Their files stay as long as a power loss may bring them
  // back.
  std::vector<uint64_t> removed_logs;
  uint64_t logged_next_id = 1;              // as far as the manifest knows
  uint64_t synced_logs = 0;                 // ManifestState
  std::vector<std::string> unsynced_files;  // that they name
  ManifestPosition position;                // behind the last edit that counts
  // Files that no edit names; of a writer. Readers of earlier edits may still need them.
  std::vector<std::string> orphans;
  // Goes on from here; null unless read_only.
  std::unique_ptr<ManifestFollower> follower;
  std::vector<uint64_t> missing_segments;  // that the manifest names, ascending
  Status missing_log;                      // not ok: one that it names is not there
};

// Makes the database where there is none and the options say so. A segment that cannot be read
// fails nothing but the reads of its table. blank: a version without tables.
Result<RecoveredDatabase> recover(const DatabaseContext& context, const Version& blank);

}  // namespace stride
