// A database as of one commit, for those who copy its files while writing goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/catalog/version.h"
#include "storage/file.h"
#include "storage/file_copy.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// The version keeps the files of its segments, which are on stable storage but for those below.
struct FrozenDatabase {
  FileSystem* fs = nullptr;
  std::string path;
  std::shared_ptr<const Version> version;
  uint32_t commit = 0;  // the last of its memtable that counts
  uint64_t next_id = 1;
  uint32_t identity = 0;
  // Files of segments that another process may not have synced yet: it is its business to sync
  // them.
  std::unordered_set<std::string> unsynced;
};

struct FrozenSegment {
  std::string path;
  uint64_t id = 0;
  std::shared_ptr<IndexedSegment> segment;
};

// All of them; a damaged one fails, with its status.
Result<std::vector<FrozenSegment>> frozen_segments(const FrozenDatabase& frozen);

// The segment's file, or what a read-only handle has mapped of one that the writer has removed.
Result<FileSource> open_frozen(const FrozenDatabase& frozen, const FrozenSegment& segment);

// Writes the rows of the memtables as logs of a copy, synced, each to path_of(its number), and
// answers what the copy's manifest says then, with all segments.
Result<ManifestState> write_frozen_logs(const FrozenDatabase& frozen,
                                        const std::function<std::string(uint64_t)>& path_of);

}  // namespace stride
