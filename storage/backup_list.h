// BACKUP: what a directory of backups holds. docs/backup.md has an example.
//
//   Result<BackupList> list = read_backup_list(fs, "backups");
//   for (const BackupFile& file : list->files) use("backups/" + file.stored_name());
//
// Every file's name in the directory ends with its checksum, so that another content is another
// file: a new backup writes over none of the files of the one before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/current_file.h"
#include "storage/file.h"
#include "storage/status.h"

namespace stride {

inline constexpr std::string_view backup_list_name = "BACKUP";

struct BackupFile {
  std::string name;  // in the database: of its manifest, of a segment or of a log
  uint64_t bytes = 0;
  // SegmentSums::checksum of a segment, file_checksum() of others (storage/file_copy.h).
  uint64_t checksum = 0;

  std::string stored_name() const;
};

struct BackupList {
  uint32_t identity = 0;  // of the database; 0: not known
  bool complete = false;  // false: the first backup has not come to its end
  std::vector<BackupFile> files;
};

// Whether a backup can have made a file of this name: "000012.seg.0123456789abcdef", or the same
// while it was written, with ".tmp" behind.
bool is_backup_file(std::string_view stored_name);

std::string encode_backup_list(const BackupList& list);
// Nothing: it is damaged.
std::optional<BackupList> decode_backup_list(std::string_view text);

// not_found: there is none. corruption. unsupported_version.
Result<BackupList> read_backup_list(FileSystem& fs, const std::string& directory);
FileChange write_backup_list(FileSystem& fs, const std::string& directory, const BackupList& list);

}  // namespace stride
