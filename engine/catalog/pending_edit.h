// An edit on its way into the manifest.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/unsynced_files.h"
#include "engine/catalog/version.h"
#include "gpu/location.h"
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
  // Those whose tables have been dropped since the segments were made.
  void drop_segments_of_missing_tables(const Version& version) noexcept {
    for (size_t i = edit.added.size(); i-- > 0;) {
      if (version.find(edit.added[i].table)) continue;
      files.discard(*segments[i]);
      segments.erase(segments.begin() + static_cast<ptrdiff_t>(i));
      edit.added.erase(edit.added.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  // Of the files of the segments.
  uint64_t added_bytes() const noexcept {
    uint64_t bytes = 0;
    for (const SegmentRecord& added : edit.added) bytes += added.bytes;
    return bytes;
  }
  PendingEdit(const PendingEdit&) = delete;
  PendingEdit& operator=(const PendingEdit&) = delete;

  UnsyncedFiles& files;
  VersionEdit edit;
  std::vector<std::shared_ptr<Segment>> segments;  // of edit.added
  uint64_t resident_bytes = 0;                     // of these
  struct Unsynced {
    std::shared_ptr<Segment> segment;
    std::string path;
  };
  std::vector<Unsynced> unsynced;  // segments whose files are not synced yet
  // Segments whose files go once the edit is synced: those of edit.removed and of dropped tables.
  std::vector<std::shared_ptr<IndexedSegment>> obsolete;
  // Takes the place of the memtable, which is sealed as the edit says. Null: that stays.
  std::shared_ptr<Memtable> memtable;
  SealedMemtable sealed;     // that one, with `memtable`
  uint64_t flushed_run = 0;  // the sealed memtable whose rows the segments have; 0: none
  // It changes where rows are and not what they say: the rows of commits before it need not be
  // durable first.
  bool only_moves_rows = false;
  // SegmentBuildOptions::stop, of what is built for the edit.
  const std::atomic<bool>* stop = nullptr;
};

}  // namespace stride
