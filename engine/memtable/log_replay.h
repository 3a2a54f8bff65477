// Reads what the write-ahead logs hold when a database is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/version.h"

namespace stride {

// Puts the rows of the manifest's logs into the version's memtable, which is made anew. Unless
// the database is read_only, what was read is put on stable storage. not_found: a log is missing.
// bytes: of what was read. corruption: what was synced can't be read, or does not fit the tables.
Status replay_logs(const DatabaseContext& context, const ManifestState& manifest,
                   Version* version, uint64_t* bytes);

}  // namespace stride
