#include "engine/catalog/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/catalog/stored_segment.h"
#include "engine/memtable/memtable.h"
#include "storage/log_reader.h"

namespace stride {
namespace {

// So often the same files may look damaged, or not be there, before they are.
constexpr int max_looks = 10;
constexpr std::chrono::seconds patience{10};

bool may_pass(const Status& s) {
  return s.code() == StatusCode::corruption || s.code() == StatusCode::not_found;
}

Status damaged_log(const std::string& path, uint64_t offset, const std::string& what) {
  return Status::corruption(path, offset, "a frame of the log " + what)
      .with_remedy("restore the database from a backup");
}

Version without_tables(const Version& version) {
  Version blank = version;
  blank.tables = TableList();
  blank.index = std::make_shared<const TableIndex>();
  return blank;
}

bool is_same(const LogRecord& a, const LogRecord& b) {
  return a.number == b.number && a.id == b.id;
}

}  // namespace

Follower::Follower(const DatabaseContext& context, RecoveredDatabase* recovered)
    : context_(context),
      manifest_(std::move(recovered->follower)),
      version_position_(recovered->position),
      database_(manifest_->database()) {
  for (ReplayedLog& log : recovered->replayed.logs)
    logs_.push_back({log.record, std::move(log.rows), nullptr, log.offset});
  recovered->replayed.logs.clear();
}

void Follower::Step::publish() const noexcept {
  for (const Rows& r : rows) r.memtable->publish(r.commit);
}

Result<Follower::Step> Follower::read_on(const std::shared_ptr<const Version>& before) {
  const auto begin = std::chrono::steady_clock::now();
  const auto is_whole = [&](const VersionEdit& edit, const ManifestReplay& edits) {
    return check_whole(context_, edit, edits);
  };
  for (int looks = 0;;) {
    auto changed = manifest_->read_on(is_whole);
    Status s = changed.status();
    if (s.ok()) s = read_files(before, looks > 0 ? MissingSegment::damage : MissingSegment::error);
    if (!s.ok() && !may_pass(s)) return s;
    auto current = manifest_->is_current();
    if (!current.ok()) return current.status();
    if (s.ok() && *current) return insert(before);
    if (!s.ok() && *current && ++looks == max_looks) return s;
    if (std::chrono::steady_clock::now() - begin > patience)
      return Status(StatusCode::unavailable, "another process changes the files too fast")
          .with_file(context_.path)
          .with_remedy("call refresh() again");
  }
}

Status Follower::read_files(const std::shared_ptr<const Version>& before, MissingSegment missing) {
  next_.reset();
  const bool is_another = manifest_->database() != database_;
  if (manifest_->position() != version_position_ || is_another) {
    // Another database's segments and logs may have the same numbers.
    if (is_another) logs_.clear();
    const ManifestState state = manifest_->replay().state();
    auto version = is_another ? with_tables_of(context_, state, without_tables(*before), missing)
                              : with_tables_of(context_, state, *before, missing);
    if (!version.ok()) return version.status();
    next_ = std::move(*version);
    next_logs_ = logs_of(state.logs);
  } else {
    next_logs_ = logs_;
  }
  return read_logs();
}

// Logs of one run lie together and share a memtable. It is gone on with where they are those that
// it was made of, and newer ones; else it is made anew.
std::vector<Follower::Log> Follower::logs_of(const std::vector<LogRecord>& records) const {
  std::vector<Log> made;
  for (size_t begin = 0, end; begin < records.size(); begin = end) {
    for (end = begin + 1; end < records.size() && records[end].run == records[begin].run;) ++end;
    auto old = std::find_if(logs_.begin(), logs_.end(),
                            [&](const Log& log) { return is_same(log.record, records[begin]); });
    std::shared_ptr<Memtable> rows;
    if (old != logs_.end()) {
      size_t of_it = 0, same = 0;  // logs that it was made of
      for (const Log& log : logs_) {
        if (log.rows != old->rows) continue;
        same += begin + of_it < end && is_same(log.record, records[begin + of_it]);
        ++of_it;
      }
      if (same == of_it) rows = old->rows;
    }
    const bool goes_on = rows != nullptr;
    if (!rows) rows = std::make_shared<Memtable>();
    for (size_t i = begin; i < end; ++i) {
      Log log{records[i], rows};
      auto is_it = [&](const Log& other) { return is_same(other.record, records[i]); };
      auto known = std::find_if(logs_.begin(), logs_.end(), is_it);
      if (goes_on && known != logs_.end()) log = *known;
      log.record = records[i];
      made.push_back(std::move(log));
    }
  }
  return made;
}

uint64_t Follower::end_of(const Log& log) {
  return log.new_frames > 0 ? log.file->position_behind(log.new_frames - 1) : log.file->position();
}

uint64_t Follower::offset_behind(const Log& log) {
  return log.new_frames > 0 ? log.file->offset_behind(log.new_frames - 1) : log.file->offset();
}

Status Follower::open_log(Log* log) const {
  if (log->file) return {};
  const std::string path = context_.log_path(log->record.number);
  auto opened = LogFollower::open(*context_.fs, path, log->record, log->offset);
  if (opened.status().code() == StatusCode::not_found)
    return Status::corruption(path, 0, "the write-ahead log is missing")
        .with_remedy("restore the file from a backup");
  if (opened.ok()) log->file = std::move(*opened);
  return opened.status();
}

// A log counts where the one before it has come to its begin. Until then what the writer has handed
// to the system is not all of the one before, or a power loss has taken the rest.
Status Follower::read_logs() {
  bool is_lost = false;
  const Log* last = nullptr;  // that counts
  for (size_t i = 0; i < next_logs_.size(); ++i) {
    Log& log = next_logs_[i];
    log.new_frames = 0;
    STRIDE_TRY(open_log(&log));
    const uint64_t end = last ? end_of(*last) : log.file->begin();  // of the logs before it
    if (!is_lost && log.file->begin() < end)
      return damaged_log(log.file->path(), 0, "begins before the log before it ends");
    is_lost = is_lost || log.file->begin() != end;
    STRIDE_TRY(log.file->read());
    if (is_lost && log.file->frames() > 0 && log.file->frame(0).header.synced > end)
      return damaged_log(log.file->path(), 0, "is damaged, and later ones say that it was whole");
    if (is_lost) continue;
    STRIDE_TRY(read_log(&log));
    last = &log;
  }
  if (last && end_of(*last) < manifest_->replay().synced_logs())
    return damaged_log(last->file->path(), offset_behind(*last),
                       "is damaged, and the manifest says that it was whole");
  return {};
}

// A frame that came after an edit which does not count, because its files are not whole yet, counts
// as little.
Status Follower::read_log(Log* log) {
  const LogFollower& file = *log->file;
  for (size_t i = 0; i < file.frames(); ++i) {
    const LogFrame frame = file.frame(i);
    if (frame.header.kind != log_rows)
      return Status(StatusCode::unsupported_version,
                    "unknown frame kind " + std::to_string(frame.header.kind))
          .with_file(file.path())
          .with_offset(file.offset_of(i))
          .with_remedy("open the database with a newer StrideDB");
    if (frame.header.next_id > manifest_->replay().next_id()) return {};
    log->new_frames = i + 1;
  }
  return file.has_rest() ? look_at_rest(log) : Status();
}

// What follows the frames is looked at once it has been there for two readings.
Status Follower::look_at_rest(Log* log) const {
  const LogFollower& file = *log->file;
  const uint64_t offset = offset_behind(*log);
  if (log->rest_seen_at != offset) {
    log->rest_seen_at = offset;
    log->rest_is_fine = false;
    return {};
  }
  if (log->rest_is_fine) return {};
  auto whole = LogReader::open(*context_.fs, file.path(), log->record);
  if (whole.status().code() == StatusCode::not_found) return {};
  if (!whole.ok()) return whole.status();
  while (whole->next()) {
  }
  if (whole->offset() == offset && whole->knows_synced_beyond(whole->position()))
    return damaged_log(file.path(), offset, "is damaged, and later ones say that it was whole");
  log->rest_is_fine = whole->offset() == offset;
  return {};
}

Result<Follower::Step> Follower::insert(const std::shared_ptr<const Version>& before) {
  Step step;
  const Version& version = next_ ? *next_ : *before;
  bool has_sealed_rows = false;
  for (const Log& log : next_logs_) {
    if (log.new_frames == 0) continue;
    STRIDE_TRY(insert_frames(log, version, &step));
    has_sealed_rows = has_sealed_rows || log.record.run != 0;
  }
  if (has_sealed_rows && !next_) next_ = make_shared_here<Version>(*before);
  if (next_) put_logs_into(next_.get(), step);
  step.version = next_ ? std::shared_ptr<const Version>(std::move(next_)) : before;
  next_.reset();
  for (Log& log : next_logs_) log.file->take(log.new_frames);
  logs_ = std::move(next_logs_);
  next_logs_.clear();
  version_position_ = manifest_->position();
  database_ = manifest_->database();
  return step;
}

// The rows of one step are one commit of the memtable. What was inserted by a step that failed has
// the number of the next one, and is inserted again.
Status Follower::insert_frames(const Log& log, const Version& version, Step* step) const {
  Memtable& memtable = *log.rows;
  const uint32_t commit = memtable.next_commit();
  for (size_t i = 0; i < log.new_frames; ++i)
    STRIDE_TRY(insert_frame(log.file->path(), log.file->offset_of(i), log.file->frame(i).payload,
                            version, commit, &memtable));
  if (step->rows.empty() || step->rows.back().memtable != log.rows)
    step->rows.push_back({log.rows, commit});
  return {};
}

// Rows that come to a sealed memtable later are not for the snapshots of this version.
void Follower::put_logs_into(Version* version, const Step& step) const {
  version->memtable.reset();
  version->sealed.clear();
  for (const Log& log : next_logs_) {
    if (log.record.run == 0) {
      version->memtable = log.rows;
      continue;
    }
    const bool is_new = version->sealed.empty() || version->sealed.front().run != log.record.run;
    if (is_new) version->sealed.insert(version->sealed.begin(), {log.record.run, log.rows, 0, 0});
    SealedMemtable& sealed = version->sealed.front();
    sealed.memory_bytes = log.rows->bytes();
    sealed.log_bytes += offset_behind(log);
    sealed.last_commit = log.rows->visible();
    for (const Step::Rows& rows : step.rows)
      if (rows.memtable == log.rows) sealed.last_commit = rows.commit;
  }
}

std::unordered_set<std::string> Follower::unsynced_files() const {
  std::unordered_set<std::string> files;
  for (const VersionEdit& edit : manifest_->unsynced())
    for (const SegmentRecord& added : edit.added)
      files.insert(context_.segment_path(added.segment));
  return files;
}

std::vector<LogRecord> Follower::logs() const {
  std::vector<LogRecord> records;
  for (const Log& log : logs_) records.push_back(log.record);
  return records;
}

uint64_t Follower::unsealed_log_bytes() const {
  uint64_t bytes = 0;
  for (const Log& log : logs_)
    if (log.record.run == 0) bytes += log.file ? log.file->offset() : log.offset;
  return bytes;
}

}  // namespace stride
