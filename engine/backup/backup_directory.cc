#include "engine/backup/backup_directory.h"

#include <algorithm>
#include <utility>

#include "storage/no_throw.h"

namespace stride {
namespace {

constexpr const char* new_directory_remedy = "give a new directory, or that of its own backup";

// What a directory may have in which no backup was begun yet.
bool may_be_there(const std::string& name) {
  return name == "LOCK" || name == "lost+found" || name == std::string(backup_list_name) + ".tmp";
}

}  // namespace

BackupDirectory::~BackupDirectory() {
  // Another program may go on with it as soon as the lock is gone.
  if (begun_ && !complete_ && is_list_known_)
    Status ignored = no_throw([&] { return remove_others(/*segments=*/false); });
  if (begun_) return;
  if (lock_) lock_->remove_if_created();
  lock_.reset();
  while (!made_.empty()) {
    Status removed = no_throw([&] { return fs_.remove_directory(made_.back()); });
    if (!removed.ok()) return;
    made_.pop_back();
  }
}

Status BackupDirectory::check(uint32_t identity, bool* has_list) {
  auto list = read_backup_list(fs_, directory_);
  *has_list = list.ok();
  if (list.ok()) {
    list_ = *list;
    if (list->identity == 0 || list->identity == identity) return {};
    return Status::invalid("the directory is the backup of another database")
        .with_file(directory_)
        .with_remedy(new_directory_remedy);
  }
  if (list.status().code() != StatusCode::not_found) return list.status();
  auto names = fs_.list(directory_);
  if (!names.ok()) return names.status();
  if (std::all_of(names->begin(), names->end(), may_be_there)) return {};
  const bool is_database = std::find(names->begin(), names->end(), "CURRENT") != names->end();
  return Status::invalid(is_database ? "the directory is a database, and no backup"
                                     : "the directory has other files, and no backup")
      .with_file(directory_)
      .with_remedy(new_directory_remedy);
}

// Looked at again once it is locked: another process may have begun a backup meanwhile.
Status BackupDirectory::open(uint32_t identity) {
  auto made = fs_.create_directory(directory_);
  if (!made.ok()) return made.status();
  made_ = std::move(*made);
  bool has_list = false;
  STRIDE_TRY(check(identity, &has_list));
  auto lock = fs_.lock(directory_ + "/LOCK");
  if (!lock.ok()) {
    const bool is_locked = lock.status().code() == StatusCode::locked;
    return is_locked ? Status(StatusCode::locked, "another backup goes on in this directory")
                           .with_file(directory_)
                           .with_remedy("wait for it, or give another directory")
                     : lock.status();
  }
  lock_ = std::move(*lock);
  STRIDE_TRY(check(identity, &has_list));
  identity_ = identity;
  if (!has_list) {
    list_ = {.identity = identity};
    STRIDE_TRY(write_backup_list(fs_, directory_, list_).status);
  }
  // A list that is not durable could give way to the one before it, whose files must be there then.
  STRIDE_TRY(fs_.sync_directory(directory_));
  begun_ = true;
  STRIDE_TRY(remove_others(/*segments=*/false));
  auto names = fs_.list(directory_);
  if (!names.ok()) return names.status();
  names_.insert(names->begin(), names->end());
  return {};
}

// A file has its name once it is whole and synced.
Result<bool> BackupDirectory::has(const BackupFile& file) const {
  if (!names_.contains(file.stored_name())) return false;
  auto there = fs_.open(path_of(file), OpenMode::read);
  if (!there.ok()) return there.status();
  auto bytes = (*there)->size();
  if (!bytes.ok()) return bytes.status();
  if (*bytes == file.bytes) return true;
  return Status::corruption(path_of(file), *bytes, "the file of the backup has another size")
      .with_remedy("remove it, and back up again while the database is there");
}

Status BackupDirectory::complete(std::vector<BackupFile> files) {
  STRIDE_TRY(fs_.sync_directory(directory_));
  BackupList list{.identity = identity_, .complete = true, .files = std::move(files)};
  const FileChange change = write_backup_list(fs_, directory_, list);
  is_list_known_ = change.status.ok() || change.unchanged;
  STRIDE_TRY(change.status);
  complete_ = true;
  list_ = std::move(list);
  // What can't be removed goes with the next backup.
  Status ignored = no_throw([&] { return remove_others(/*segments=*/true); });
  return {};
}

Status BackupDirectory::remove_others(bool segments) {
  std::unordered_set<std::string> kept;
  for (const BackupFile& file : list_.files) kept.insert(file.stored_name());
  auto names = fs_.list(directory_);
  if (!names.ok()) return names.status();
  Status failure;
  for (const std::string& name : *names) {
    const bool is_whole_segment =
        name.find(".seg.") != std::string::npos && !name.ends_with(".tmp");
    if (!is_backup_file(name) || kept.contains(name) || (is_whole_segment && !segments)) continue;
    Status s = fs_.remove(path_of(name));
    if (!s.ok()) failure = std::move(s);
  }
  return failure;
}

}  // namespace stride
