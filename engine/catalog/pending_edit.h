// An edit on its way into the manifest.
#pragma once

#include <memory>
#include <vector>

#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/unsynced_files.h"
#include "storage/manifest.h"
#include "storage/segment.h"

namespace stride {

class Memtable;

// Holds the files of the segments that the edit adds, and removes those that do not get into the
// manifest.
struct PendingEdit {
  explicit PendingEdit(UnsyncedFiles& unsynced) : files(unsynced) {}
  ~PendingEdit() {
    for (const auto& segment : segments) files.discard(*segment);
  }
  PendingEdit(const PendingEdit&) = delete;
  PendingEdit& operator=(const PendingEdit&) = delete;

  UnsyncedFiles& files;
  VersionEdit edit;
  std::vector<std::shared_ptr<Segment>> segments;  // of edit.added
  uint64_t resident_bytes = 0;                     // of these
  // Segments whose files go once the edit is synced: those of edit.removed and of dropped tables.
  std::vector<std::shared_ptr<IndexedSegment>> obsolete;
  // Takes the place of the one that there is, whose rows the segments have. Null: that stays.
  std::shared_ptr<Memtable> memtable;
};

}  // namespace stride
