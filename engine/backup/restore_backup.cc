#include <utility>

#include "engine/backup/make_backup.h"
#include "engine/backup/new_database.h"
#include "storage/backup_list.h"
#include "storage/copy_files.h"
#include "storage/manifest_format.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

class Restoration {
 public:
  Restoration(FileSystem& fs, const std::string& backup, const std::string& directory)
      : fs_(fs), backup_(backup), made_(fs, directory) {}

  Status run(CopyCounters* counters, CopyReport* report) {
    auto list = read_list();
    if (!list.ok()) return list.status();
    for (const BackupFile& file : list->files) report->bytes += file.bytes;
    report->files = report->copied_files = list->files.size();
    report->copied_bytes = report->bytes;
    counters->total_files = report->files;
    counters->total_bytes = report->bytes;
    STRIDE_TRY(made_.begin());
    Status s = copy_files(list->files.size(), &counters->files,
                          [&](uint64_t i) { return copy(list->files[i]); });
    STRIDE_TRY(has_changed(s, *list) ? changed() : s);
    return made_.finish();
  }

 private:
  Result<BackupList> read_list() const {
    auto list = read_backup_list(fs_, backup_);
    if (list.status().code() == StatusCode::not_found)
      return Status(StatusCode::not_found, "no backup here")
          .with_file(backup_)
          .with_remedy("give the directory that a backup was made in");
    if (list.ok() && !list->complete)
      return Status(StatusCode::not_found, "the first backup has not come to its end")
          .with_file(backup_)
          .with_remedy("back up again: what was copied is there");
    return list;
  }
  Status copy(const BackupFile& file) {
    const std::string path = backup_ + "/" + file.stored_name();
    auto source = FileSource::open(fs_, path);
    if (source.status().code() == StatusCode::not_found)
      return damaged(Status::corruption(path, 0, "a file of the backup is missing"));
    if (!source.ok()) return source.status();
    if (source->bytes() != file.bytes)
      return damaged(
          Status::corruption(path, source->bytes(), "the file of the backup has another size"));
    const std::string to = made_.add(file.name);
    const auto segment = segment_number(file.name);
    if (!segment) return damaged(copy_file(*source, file.checksum, fs_, to));
    auto sums = read_segment_sums(*source, *segment);
    if (!sums.ok()) return damaged(sums.status());
    if (sums->checksum != file.checksum)
      return damaged(Status::corruption(path, 0, "the file holds another segment"));
    return damaged(copy_segment(*source, *sums, fs_, to));
  }
  static Status damaged(Status s) {
    if (s.code() != StatusCode::corruption) return s;
    return std::move(s).with_remedy(
        "use another backup; or, while the database is there, remove this file and back up again");
  }
  // Another backup removes the files of the one that is being read.
  bool has_changed(const Status& s, const BackupList& before) const {
    if (s.code() != StatusCode::corruption) return false;
    auto now = read_backup_list(fs_, backup_);
    return now.ok() && encode_backup_list(*now) != encode_backup_list(before);
  }
  Status changed() const {
    return Status(StatusCode::unavailable, "another backup was completed meanwhile")
        .with_file(backup_)
        .with_remedy("restore again");
  }

  FileSystem& fs_;
  const std::string backup_;
  NewDatabase made_;
};

}  // namespace

Status restore_backup(FileSystem& fs, const std::string& backup, const std::string& directory,
                      CopyCounters* counters, CopyReport* report) {
  return Restoration(fs, backup, directory).run(counters, report);
}

Status restore(const std::string& backup_directory, const std::string& new_directory,
               const CopyOptions& options, CopyReport* report, FileSystem* file_system) {
  return no_throw([&] {
    CopyReport made;
    FileSystem& fs = file_system ? *file_system : FileSystem::posix();
    Status s = run_copy(options, [&](CopyCounters* counters) {
      return restore_backup(fs, backup_directory, new_directory, counters, &made);
    });
    if (s.ok() && report) *report = made;
    return s;
  });
}

}  // namespace stride
