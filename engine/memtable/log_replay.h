// Reads what the write-ahead logs hold when a database is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/version.h"

namespace stride {

// How far a log was read, and into which memtable.
struct ReplayedLog {
  LogRecord record;
  uint64_t offset = 0;  // in the file, behind the last frame that counts; 0: none does
  std::shared_ptr<Memtable> rows;
};

struct ReplayedLogs {
  std::vector<ReplayedLog> logs;  // in their order
  uint64_t unsealed_bytes = 0;    // of what was read from logs that are not sealed
  uint64_t sealed_end = 0;        // the position at which the last sealed one ends
  uint64_t end = 0;               // and the last one of all
  // These come after rows that a power loss has taken, and so do not count.
  std::vector<uint64_t> lost;
};

// Puts the rows of the manifest's logs into the version's memtables, which are made anew. Unless
// the database is read_only, what was read is put on stable storage. not_found: a log is missing.
// corruption: what was synced can't be read, or does not fit the tables.
Status replay_logs(const DatabaseContext& context, const ManifestState& manifest, Version* version,
                   ReplayedLogs* replayed);

// Inserts what a frame of a log holds as rows of this commit, which is not published yet. Rows of
// tables that the version does not have any more are left out. path, offset: of the frame, for what
// is said of one that does not fit: corruption.
Status insert_frame(const std::string& path, uint64_t offset, Bytes payload, const Version& version,
                    uint32_t commit, Memtable* memtable);

// Reads every frame of these logs, each of which begins where the one before it ends. end: the
// position at which the last one ends, or did a moment ago. corruption, with file and offset: a log
// is missing, or ends earlier.
Status verify_logs(const DatabaseContext& context, const std::vector<LogRecord>& logs,
                   uint64_t end);

}  // namespace stride
