// The directory of a database that is being opened for writing: made, and locked.
//
//   DirectoryClaim claim(fs, "db");
//   STRIDE_TRY(claim.acquire(/*create=*/true));
//   ... open what is there, or make it ...
//   lock = claim.keep();
//
// An opening that fails leaves the directory as it found it: what was not kept is taken back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/status.h"

namespace stride {

class DirectoryClaim {
 public:
  DirectoryClaim(FileSystem& fs, std::string directory)
      : fs_(fs), directory_(std::move(directory)) {}
  DirectoryClaim(const DirectoryClaim&) = delete;
  DirectoryClaim& operator=(const DirectoryClaim&) = delete;
  ~DirectoryClaim();

  // With `create` the directory and its parents are made where they are not there. locked, or
  // invalid_argument for a directory of other files, in which nothing is touched.
  Status acquire(bool create);
  std::unique_ptr<FileLock> keep();
  // Whether the directory was not there.
  bool has_made_directory() const { return !made_.empty(); }

 private:
  Status try_acquire(bool create);
  void remove_directories();

  FileSystem& fs_;
  const std::string directory_;
  std::vector<std::string> made_;  // directories, parents first
  std::unique_ptr<FileLock> lock_;
};

}  // namespace stride
