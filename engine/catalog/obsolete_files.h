// The files that edits of the manifest have given up, and which readers in other processes may
// still read.
//
//   obsolete.look(position);         // after an edit that gives up files: what leases are there?
//   obsolete.remove(path, position); // at once, or when the last lease has passed the edit
//
// A reader takes its lease before it reads the manifest. So who takes one after the look has read
// the edit, and needs none of the files: a look serves all edits before it, for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/manifest.h"

namespace stride {

// Thread-safe. One writer has one, which may outlive it.
class ObsoleteFiles {
 public:
  ObsoleteFiles(FileSystem& fs, std::string directory)
      : fs_(fs), directory_(std::move(directory)) {}

  // Looks at the leases, when the manifest has come to `now`, and removes the files that no reader
  // needs any more, with the leases of readers that have died. A call or two of the file system
  // for each lease, and one for the directory.
  void look(ManifestPosition now) noexcept;
  // Removes a file that edits up to `since` have given up: now, or by a later look(). Where that
  // fails, or comes too late, the next opening for writing does it.
  void remove(std::string path, ManifestPosition since) noexcept;
  // Whether files are kept for readers.
  bool has_waiting() const noexcept { return waiting_count_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Waiting {
    std::string path;
    ManifestPosition since;
  };
  // Where the reader is that has come least far; `now` where there is none.
  Status look_at_leases(ManifestPosition now, ManifestPosition* least);
  Status look_at_lease(const std::string& path, ManifestPosition* least);

  FileSystem& fs_;
  const std::string directory_;
  std::mutex mutex_;
  ManifestPosition passed_;  // by all readers that there are and will be
  std::vector<Waiting> waiting_;
  std::atomic<uint64_t> waiting_count_{0};
};

}  // namespace stride
