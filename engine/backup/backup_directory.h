// The directory of a backup, while one is made in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "storage/backup_list.h"
#include "storage/file.h"
#include "storage/status.h"

namespace stride {

// One thread at a time; but has() may be called by several, beside write() of other files.
class BackupDirectory {
 public:
  BackupDirectory(FileSystem& fs, std::string directory)
      : fs_(fs), directory_(std::move(directory)) {}
  BackupDirectory(const BackupDirectory&) = delete;
  BackupDirectory& operator=(const BackupDirectory&) = delete;
  // Takes back the directory if nothing was begun in it, and what is of no use to a next backup.
  ~BackupDirectory();

  // Makes it where it is not there, and locks it. invalid_argument: it is the backup of another
  // database, a database, or has other files. locked.
  Status open(uint32_t identity);
  // Whether the file is there, whole.
  Result<bool> has(const BackupFile& file) const;
  std::string path_of(const BackupFile& file) const { return path_of(file.stored_name()); }
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  // Where a file is made that has no checksum yet, or is not whole.
  std::string unfinished_path(const std::string& name) const { return path_of(name + ".tmp"); }
  // Gives what was made and synced there its name.
  Status keep(const std::string& unfinished, const BackupFile& file) {
    return fs_.rename(unfinished, path_of(file));
  }
  // From here on these files are the backup; those of the one before are removed.
  Status complete(std::vector<BackupFile> files);

 private:
  Status check(uint32_t identity, bool* has_list);
  // What is not of the list; segments only where asked for: they may be of the next backup.
  Status remove_others(bool segments);

  FileSystem& fs_;
  const std::string directory_;
  std::vector<std::string> made_;  // directories, parents first
  std::unique_ptr<FileLock> lock_;
  uint32_t identity_ = 0;
  std::unordered_set<std::string> names_;  // that were there when it was opened
  BackupList list_;                        // that is in force, and durable
  bool begun_ = false, complete_ = false;
  bool is_list_known_ = true;  // false: this one or the next
};

}  // namespace stride
