// Reads what the write-ahead logs hold when a database is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/version.h"

namespace stride {

struct ReplayedLogs {
  uint64_t unsealed_bytes = 0;  // of what was read from logs that are not sealed
  uint64_t sealed_end = 0;      // the position at which the last sealed one ends
  uint64_t end = 0;             // and the last one of all
  // These come after rows that a power loss has taken, and so do not count.
  std::vector<uint64_t> lost;
};

// Puts the rows of the manifest's logs into the version's memtables, which are made anew. Unless
// the database is read_only, what was read is put on stable storage. not_found: a log is missing.
// corruption: what was synced can't be read, or does not fit the tables.
Status replay_logs(const DatabaseContext& context, const ManifestState& manifest, Version* version,
                   ReplayedLogs* replayed);

// Reads every frame of these logs, each of which begins where the one before it ends. end: the
// position at which the last one ends, or did a moment ago. corruption, with file and offset: a log
// is missing, or ends earlier.
Status verify_logs(const DatabaseContext& context, const std::vector<LogRecord>& logs,
                   uint64_t end);

}  // namespace stride
