#include "engine/backup/make_backup.h"

#include <utility>
#include <vector>

#include "engine/backup/backup_directory.h"
#include "storage/copy_files.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

// The file is damaged in the database: its remedy is that of somebody who wants a backup.
Status told_by_backup(Status s) {
  if (s.code() != StatusCode::corruption) return s;
  return std::move(s).with_remedy(
      "restore this file from an earlier backup, or drop its table (stride verify names it); the "
      "backup in the directory is as it was");
}

class Backup {
 public:
  Backup(const FrozenDatabase& frozen, const std::string& directory)
      : frozen_(frozen), fs_(*frozen.fs), directory_(fs_, directory) {}

  Status run(CopyCounters* counters, CopyReport* report) {
    auto segments = frozen_segments(frozen_);
    if (!segments.ok()) return told_by_backup(segments.status());
    STRIDE_TRY(directory_.open(frozen_.identity));
    STRIDE_TRY(choose(*segments));
    counters->total_files = missing_.size();
    counters->total_bytes = missing_bytes_;
    STRIDE_TRY(copy_files(missing_.size(), &counters->files,
                          [&](uint64_t i) { return copy((*segments)[missing_[i]]); }));
    report->copied_files = missing_.size();
    report->copied_bytes = missing_bytes_;
    STRIDE_TRY(write_rest(report));
    for (const BackupFile& file : files_) report->bytes += file.bytes;
    report->files = files_.size();
    STRIDE_TRY(WorkWatch::check());
    return directory_.complete(std::move(files_));
  }

 private:
  // Which segments are not there yet. Reads the ends of all of them.
  Status choose(const std::vector<FrozenSegment>& segments) {
    for (size_t i = 0; i < segments.size(); ++i) {
      STRIDE_TRY(WorkWatch::check());
      auto source = open_frozen(frozen_, segments[i]);
      if (!source.ok()) return told_by_backup(source.status());
      auto sums = read_segment_sums(*source, segments[i].id);
      if (!sums.ok()) return told_by_backup(sums.status());
      files_.push_back({segment_name(segments[i].id), sums->bytes, sums->checksum});
      auto there = directory_.has(files_.back());
      if (!there.ok()) return there.status();
      if (*there) continue;
      missing_.push_back(i);
      missing_bytes_ += sums->bytes;
    }
    return {};
  }
  Status copy(const FrozenSegment& segment) {
    auto source = open_frozen(frozen_, segment);
    if (!source.ok()) return told_by_backup(source.status());
    auto sums = read_segment_sums(*source, segment.id);
    if (!sums.ok()) return told_by_backup(sums.status());
    const BackupFile file{segment_name(segment.id), sums->bytes, sums->checksum};
    const std::string unfinished = directory_.unfinished_path(file.stored_name());
    STRIDE_TRY(told_by_backup(copy_segment(*source, *sums, fs_, unfinished)));
    return directory_.keep(unfinished, file);
  }
  // The logs and the manifest.
  Status write_rest(CopyReport* report) {
    auto state = write_frozen_logs(
        frozen_, [&](uint64_t number) { return directory_.unfinished_path(log_name(number)); });
    if (!state.ok()) return state.status();
    for (const LogRecord& log : state->logs) STRIDE_TRY(keep(log_name(log.number), report));
    auto bytes = encode_manifest(1, frozen_.identity, *state);
    if (!bytes.ok()) return bytes.status();
    auto file = fs_.open(directory_.unfinished_path(manifest_name(1)), OpenMode::create);
    if (!file.ok()) return file.status();
    STRIDE_TRY((*file)->write_at(0, *bytes));
    STRIDE_TRY((*file)->sync());
    return keep(manifest_name(1), report);
  }
  Status keep(const std::string& name, CopyReport* report) {
    const std::string unfinished = directory_.unfinished_path(name);
    auto source = FileSource::open(fs_, unfinished);
    if (!source.ok()) return source.status();
    auto sum = file_checksum(*source);
    if (!sum.ok()) return sum.status();
    files_.push_back({name, source->bytes(), *sum});
    ++report->copied_files;
    report->copied_bytes += source->bytes();
    return directory_.keep(unfinished, files_.back());
  }

  const FrozenDatabase& frozen_;
  FileSystem& fs_;
  BackupDirectory directory_;
  std::vector<BackupFile> files_;  // of the new backup; first of all segments, in their order
  std::vector<uint64_t> missing_;  // positions in the list of segments
  uint64_t missing_bytes_ = 0;
};

}  // namespace

Status make_backup(const FrozenDatabase& frozen, const std::string& directory,
                   CopyCounters* counters, CopyReport* report) {
  return Backup(frozen, directory).run(counters, report);
}

}  // namespace stride
