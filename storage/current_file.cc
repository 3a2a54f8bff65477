#include "storage/current_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/manifest_format.h"

namespace stride {

namespace {

bool is_data_file(const std::string& name) { return segment_number(name).has_value(); }

// Files that any directory may have before a database is created in it: the lock is taken first,
// and the root of a file system is never empty. CURRENT comes last: where it was missing a moment
// ago, another process has created a database meanwhile.
bool is_neutral(const std::string& name) {
  return name == "LOCK" || name == "lost+found" || name == "CURRENT";
}

// LevelDB and its descendants have files of the same names. `interrupted`: what a power loss left
// of a file of ours counts too.
bool is_our_manifest(FileSystem& fs, const std::string& path, bool interrupted) {
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::read);
  // It was there a moment ago: another process has given up its creation.
  if (file.status().code() == StatusCode::not_found) return interrupted;
  if (!file.ok()) return false;
  Result<uint64_t> size = (*file)->size();
  if (!size.ok()) return false;
  uint64_t magic = 0;
  if (*size < sizeof magic) return interrupted;
  if (!(*file)->read_at(0, std::as_writable_bytes(std::span(&magic, 1))).ok()) return false;
  return magic == manifest_magic || (interrupted && magic == 0);
}

Status not_a_database(const std::string& directory) {
  return Status::invalid("not a StrideDB database: the directory has other files")
      .with_file(directory)
      .with_remedy("give the directory of a database, or an empty or new one");
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status no_database(const std::string& directory) {
  return Status(StatusCode::not_found, "no database here")
      .with_file(directory)
      .with_remedy(
          "check the path, or open it for writing with create_if_missing, which makes one");
}

Status explain_missing(FileSystem& fs, const std::string& directory) {
  Result<std::vector<std::string>> names = fs.list(directory);
  if (names.status().code() == StatusCode::not_found) return no_database(directory);
  if (!names.ok()) return names.status();
  if (has(*names, unfinished_name))
    return Status::invalid("a copy of a database was begun here, and is not whole")
        .with_file(directory)
        .with_remedy("remove the directory, and make the checkpoint or restore the backup again");
  if (has(*names, "BACKUP"))
    return Status::invalid("this is a backup, and no database")
        .with_file(directory)
        .with_remedy("restore it into a new directory (stride restore), and open that");
  if (std::any_of(names->begin(), names->end(), is_data_file)) {
    return Status(StatusCode::corruption, "CURRENT is missing, but data files are there")
        .with_file(directory + "/CURRENT")
        .with_remedy("restore CURRENT from a backup");
  }
  bool ours = std::all_of(names->begin(), names->end(), [&](const std::string& name) {
    return is_neutral(name) || name == "CURRENT.tmp" ||
           (manifest_number(name) && is_our_manifest(fs, directory + "/" + name, true));
  });
  if (!ours) return not_a_database(directory);
  return no_database(directory);
}

Status explain_damaged(FileSystem& fs, const std::string& directory) {
  Result<std::vector<std::string>> names = fs.list(directory);
  if (!names.ok()) return names.status();
  bool ours = std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return is_data_file(name) ||
           (manifest_number(name) && is_our_manifest(fs, directory + "/" + name, false));
  });
  if (!ours) return not_a_database(directory);
  return Status::corruption(directory + "/CURRENT", 0, "CURRENT is damaged")
      .with_remedy("restore CURRENT from a backup");
}

Status write_temporary(FileSystem& fs, const std::string& path, const std::string& text) {
  Status leftover = fs.remove(path);
  if (!leftover.ok() && leftover.code() != StatusCode::not_found) return leftover;
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::create);
  if (!file.ok()) return file.status();
  STRIDE_TRY((*file)->write_at(0, as_bytes(text)));
  return (*file)->sync();
}

}  // namespace

FileChange replace_file(FileSystem& fs, const std::string& directory, const std::string& name,
                        const std::string& text) {
  const std::string path = directory + "/" + name, temporary = path + ".tmp";
  Status status = write_temporary(fs, temporary, text);
  if (status.ok()) status = fs.rename(temporary, path);
  if (!status.ok()) {
    (void)fs.remove(temporary);
    return {std::move(status), true};
  }
  return {fs.sync_directory(directory), false};
}

FileChange write_current(FileSystem& fs, const std::string& directory, uint64_t number) {
  return replace_file(fs, directory, "CURRENT", encode_current(number));
}

Result<std::string> read_file(FileSystem& fs, const std::string& path, uint64_t max_bytes) {
  Result<std::unique_ptr<File>> file = fs.open(path, OpenMode::read);
  if (!file.ok()) return file.status();
  Result<uint64_t> size = (*file)->size();
  if (!size.ok()) return size.status();
  if (*size > max_bytes) {
    return Status::corruption(path, max_bytes, "the file is too long to be what its name says")
        .with_remedy("restore the file from a backup");
  }
  std::string bytes(*size, '\0');
  STRIDE_TRY((*file)->read_at(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

Result<uint64_t> read_current(FileSystem& fs, const std::string& directory) {
  constexpr uint64_t max_bytes = 256;
  Result<std::string> text = read_file(fs, directory + "/CURRENT", max_bytes);
  if (text.status().code() == StatusCode::corruption) return explain_damaged(fs, directory);
  if (!text.ok()) {
    bool missing = text.status().code() == StatusCode::not_found;
    return missing ? explain_missing(fs, directory) : text.status();
  }
  std::optional<uint64_t> number = decode_current(*text);
  if (!number) return explain_damaged(fs, directory);
  return *number;
}

}  // namespace stride
