// The file of a segment, as long as somebody may read it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/catalog/obsolete_files.h"
#include "storage/manifest.h"

namespace stride {

// The version set makes one for each segment, and the segment holds it through a shared pointer.
// Once no edit names the file any longer, it is removed when the last holder goes, unless
// readers in other processes need it. Thread-safe.
class SegmentFile {
 public:
  explicit SegmentFile(std::string path) : path_(std::move(path)) {}
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  // Once, by the writer. Precondition: a synced edit has taken the segment away, and the manifest
  // has come to `since`.
  void remove_when_unused(std::shared_ptr<ObsoleteFiles> files, ManifestPosition since) noexcept {
    since_ = since;
    obsolete_ = std::move(files);
  }
  // Ranges have erased all rows: it went for that, and not because others have its rows. Set and
  // read under the commit lock.
  void set_erased() noexcept { erased_ = true; }
  bool is_erased() const noexcept { return erased_; }

 private:
  std::string path_;
  std::shared_ptr<ObsoleteFiles> obsolete_;  // null: edits name it
  ManifestPosition since_;
  bool erased_ = false;
};

}  // namespace stride
