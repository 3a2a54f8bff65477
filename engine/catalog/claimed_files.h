// The files of a database's directory, while the database is open for writing. Its lock is a file
// in that directory: where the path of the lock names another file, the directory has been moved or
// replaced, and what has the names of the database's files may be somebody else's.
//
//   ClaimedFiles files(FileSystem::posix(), "db");
//   files.claim(std::move(lock));       // of "db/LOCK"
//   files.remove("db/000007.seg");      // io_error where the directory is another one now
//   files.release();                    // nothing in the directory is changed any more
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/file.h"

namespace stride {

// Passes all calls on; but of those that concern files in the directory, while it is claimed, only
// where the lock is in its place, and after that none that changes something. Thread-safe.
class ClaimedFiles final : public FileSystem {
 public:
  // below: must outlive this.
  ClaimedFiles(FileSystem& below, const std::string& directory)
      : below_(below), inside_(directory + "/") {}

  void claim(std::unique_ptr<FileLock> lock);
  // Gives the lock up, if there is one. May be called again.
  void release();

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status link(const std::string& from, const std::string& to) override;

  Result<bool> exists(const std::string& path) override { return below_.exists(path); }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return below_.list(directory);
  }
  Result<std::vector<std::string>> create_directory(const std::string& path) override {
    return below_.create_directory(path);
  }
  Status remove_directory(const std::string& path) override {
    return below_.remove_directory(path);
  }
  Status sync_directory(const std::string& directory) override {
    return below_.sync_directory(directory);
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return below_.lock(path);
  }
  Result<bool> is_locked(const std::string& path) override { return below_.is_locked(path); }

 private:
  Status check(const std::string& path, bool changes);

  FileSystem& below_;
  const std::string inside_;  // what paths in the directory begin with
  std::mutex mutex_;
  std::unique_ptr<FileLock> lock_;
  bool is_released_ = false;
};

}  // namespace stride
