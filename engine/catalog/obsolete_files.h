// The files that edits of the manifest have given up, and which readers in other processes may
// still read.
//
//   obsolete.expect(files, bytes);                        // an edit has given them up
//   if (obsolete.is_look_due()) obsolete.look(position);  // what leases are there?
//   obsolete.remove(path, position);  // at once, or when a look finds that all leases passed it
//
// A reader takes its lease before it reads the manifest. So who takes one after the look has read
// the edit, and needs none of the files: a look serves all edits before it, for good.
//
// A look reads the names of all files in the directory. Where these are many, one serves several
// edits, so that its cost is a small part of what wrote the files that it removes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/file.h"
#include "storage/manifest.h"

namespace stride {

// Thread-safe. One writer has one, which may outlive it.
class ObsoleteFiles {
 public:
  ObsoleteFiles(std::shared_ptr<FileSystem> fs, std::string directory)
      : fs_(std::move(fs)), directory_(std::move(directory)) {}

  // Looks at the leases, when the manifest has come to `now`, and removes the files that no reader
  // needs any more, with the leases of readers that have died. A call or two of the file system
  // for each lease, and one for the directory.
  void look(ManifestPosition now) noexcept;
  // Removes a file that edits up to `since` have given up: now, or by a later look(). Where that
  // fails, or comes too late, the next opening for writing does it.
  void remove(std::string path, ManifestPosition since) noexcept;
  // An edit has given up so many files, of so many bytes.
  void expect(uint64_t files, uint64_t bytes) noexcept;
  // Whether a look is worth its cost for what was given up since the last one: for any file where
  // the directory has few, else for a 64th of them, or for 16 MiB.
  bool is_look_due() const noexcept;
  // Whether anything was given up since the last look.
  bool has_expected() const noexcept { return expected_files_.load(relaxed) > 0; }
  // Whether files are kept for readers.
  bool has_waiting() const noexcept { return waiting_count_.load(relaxed) > 0; }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  struct Waiting {
    std::string path;
    ManifestPosition since;
  };
  // Where the reader is that has come least far; `now` where there is none.
  Status look_at_leases(ManifestPosition now, ManifestPosition* least);
  Status look_at_lease(const std::string& path, ManifestPosition* least);

  const std::shared_ptr<FileSystem> fs_;
  const std::string directory_;
  std::mutex mutex_;
  ManifestPosition looked_;  // where the manifest was at the last look
  ManifestPosition passed_;  // by all readers that there are and will be
  std::vector<Waiting> waiting_;
  std::atomic<uint64_t> waiting_count_{0};  // of these: the last look has found a reader of them
  std::atomic<uint64_t> names_{0};          // that the last look has found in the directory
  std::atomic<uint64_t> expected_files_{0}, expected_bytes_{0};  // since then
};

}  // namespace stride
