// CURRENT: which manifest is the database's. Like any small file of a database it is replaced as a
// whole, atomically and durably.
#pragma once

#include <cstdint>
#include <string>

#include "storage/file.h"
#include "storage/status.h"

namespace stride {

struct FileChange {
  Status status;
  // True where the file is certain to hold what it did before; else either, after a power loss.
  bool unchanged = false;
};

// Writes NAME.tmp in the directory, syncs and renames it, and syncs the directory.
FileChange replace_file(FileSystem& fs, const std::string& directory, const std::string& name,
                        const std::string& text);

// Is there as long as a directory is being made a copy of a database. It has no meaning beside
// CURRENT.
inline constexpr const char* unfinished_name = "UNFINISHED";

// Replaces CURRENT.
FileChange write_current(FileSystem& fs, const std::string& directory, uint64_t number);

// The manifest's number. Where there is no CURRENT, says why: not_found (no database here, or one
// whose creation was interrupted), corruption (it is gone, and segments are there), or
// invalid_argument (the directory is not a database's, or a copy that was not finished).
Result<uint64_t> read_current(FileSystem& fs, const std::string& directory);

// The file as bytes. corruption: it has more than max_bytes.
Result<std::string> read_file(FileSystem& fs, const std::string& path,
                              uint64_t max_bytes = UINT64_MAX);

}  // namespace stride
