// The directory of a database that is copied from another one: whole once its CURRENT is written,
// and removed or clearly no database before.
//
//   NewDatabase made(fs, "checkpoint");
//   STRIDE_TRY(made.begin());
//   STRIDE_TRY(fs.link("db/000007.seg", made.add("000007.seg")));
//   STRIDE_TRY(made.finish());
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "engine/catalog/directory_claim.h"
#include "storage/file.h"
#include "storage/status.h"

namespace stride {

class NewDatabase {
 public:
  NewDatabase(FileSystem& fs, std::string directory);
  NewDatabase(const NewDatabase&) = delete;
  NewDatabase& operator=(const NewDatabase&) = delete;
  // Removes all of it, unless it was finished.
  ~NewDatabase();

  // already_exists: the directory is there.
  Status begin();
  // The path of a file that the caller makes, synced, or has tried to. Thread-safe.
  std::string add(const std::string& name);
  // Precondition: there is a MANIFEST-000001. Makes all names durable, and it a database.
  Status finish();

 private:
  void remove_files();

  FileSystem& fs_;
  const std::string directory_;
  DirectoryClaim claim_;  // before files_: they go first
  std::mutex mutex_;      // guards files_
  std::vector<std::string> files_;
  bool begun_ = false, finished_ = false;
};

}  // namespace stride
