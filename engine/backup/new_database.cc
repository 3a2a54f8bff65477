#include "engine/backup/new_database.h"

#include <utility>

#include "storage/current_file.h"
#include "storage/no_throw.h"

namespace stride {

NewDatabase::NewDatabase(FileSystem& fs, std::string directory)
    : fs_(fs), directory_(std::move(directory)), claim_(fs, directory_) {}

NewDatabase::~NewDatabase() {
  if (begun_ && !finished_) remove_files();
}

Status NewDatabase::begin() {
  auto there = [&] {
    auto unfinished = fs_.exists(directory_ + "/" + unfinished_name);
    auto current = fs_.exists(directory_ + "/CURRENT");
    if (unfinished.ok() && *unfinished && current.ok() && !*current)
      return Status(StatusCode::already_exists,
                    "a copy of a database was begun here, and is not whole")
          .with_file(directory_)
          .with_remedy("remove the directory if no copy is under way, and try again");
    return Status(StatusCode::already_exists, "there is something of this name already")
        .with_file(directory_)
        .with_remedy("give the path of a directory that is not there");
  };
  auto exists = fs_.exists(directory_);
  if (!exists.ok()) return exists.status();
  if (*exists) return there();
  STRIDE_TRY(claim_.acquire(/*create=*/true));
  if (!claim_.has_made_directory()) return there();
  begun_ = true;
  // What a power loss leaves of it is known by this.
  const FileChange marked =
      replace_file(fs_, directory_, std::string(unfinished_name),
                   "A copy of a StrideDB database was begun here and is not whole.\n");
  return marked.status;
}

std::string NewDatabase::add(const std::string& name) {
  std::string path = directory_ + "/" + name;
  std::lock_guard guard(mutex_);
  files_.push_back(path);
  return path;
}

// From the moment on at which CURRENT may be there, nothing that it leads to is removed unless it
// is sure to be gone.
Status NewDatabase::finish() {
  STRIDE_TRY(fs_.sync_directory(directory_));
  const FileChange change = write_current(fs_, directory_, 1);
  if (!change.status.ok() && !change.unchanged) {
    Status gone = no_throw([&] {
      STRIDE_TRY(fs_.remove(directory_ + "/CURRENT"));
      return fs_.sync_directory(directory_);
    });
    if (!gone.ok()) {
      finished_ = true;
      claim_.keep();
    }
  }
  STRIDE_TRY(change.status);
  finished_ = true;
  // Where it stays it does no harm, and goes when the database is opened.
  Status ignored = no_throw([&] { return fs_.remove(directory_ + "/" + unfinished_name); });
  claim_.keep();
  return {};
}

// The mark goes last.
void NewDatabase::remove_files() {
  for (const std::string& path : files_)
    Status ignored = no_throw([&] { return fs_.remove(path); });
  Status ignored = no_throw([&] { return fs_.sync_directory(directory_); });
  ignored = no_throw([&] { return fs_.remove(directory_ + "/" + unfinished_name); });
}

}  // namespace stride
