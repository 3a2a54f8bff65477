// Makes runs of sealed memtables, oldest first.
//
//   PendingEdit pending(unsynced);
//   Result<uint64_t> run = flush.build(*version, &pending);            // no lock
//   if (run.ok() && *run != 0) s = flush.install(*run, &pending);      // commit lock
#pragma once

#include <cstdint>

#include "engine/build/run_builder.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/pending_edit.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version_set.h"
#include "storage/status.h"

namespace stride {

class MemtableFlush {
 public:
  MemtableFlush(const DatabaseContext& context, VersionSet& versions, UnsyncedFiles& unsynced,
                RunBuilder& builder)
      : context_(context), versions_(versions), unsynced_(unsynced), builder_(builder) {}

  // Writes and syncs the segments of the oldest sealed memtable of the version, and returns its
  // run. 0: there is none.
  Result<uint64_t> build(const Version& version, PendingEdit* pending);
  // Puts the segments in the memtable's place, synced, and gives its logs up. Requires the commit
  // lock, and that the memtable is the oldest one still.
  Status install(uint64_t run, PendingEdit* pending);

 private:
  const DatabaseContext& context_;
  VersionSet& versions_;
  UnsyncedFiles& unsynced_;
  RunBuilder& builder_;
};

}  // namespace stride
