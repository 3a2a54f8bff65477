// The file of a segment, as long as somebody may read it.
#pragma once

#include <atomic>
#include <string>

#include "storage/file.h"

namespace stride {

// The version set makes one for each segment, and the segment holds it through a shared pointer.
// Once no edit names the file any longer, it is removed when the last holder goes. Thread-safe.
class SegmentFile {
 public:
  SegmentFile(FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  // Precondition: a synced edit has taken the segment away.
  void remove_when_unused() noexcept { obsolete_.store(true, std::memory_order_relaxed); }
  // Ranges have erased all rows: it went for that, and not because others have its rows. Set and
  // read under the commit lock.
  void set_erased() noexcept { erased_ = true; }
  bool is_erased() const noexcept { return erased_; }

 private:
  FileSystem& fs_;
  const std::string path_;
  std::atomic<bool> obsolete_{false};
  bool erased_ = false;
};

}  // namespace stride
