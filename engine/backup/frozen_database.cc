#include "engine/backup/frozen_database.h"

#include <algorithm>
#include <utility>

#include "engine/catalog/version_set.h"
#include "engine/memtable/memtable.h"
#include "storage/log_rows.h"
#include "storage/log_writer.h"

namespace stride {
namespace {

constexpr uint64_t max_frame_bytes = 4 << 20;  // about: a row more

// Writes logs one behind the other. No sync is waited for before a log has all of its rows.
class FrozenLogs {
 public:
  FrozenLogs(const FrozenDatabase& frozen, const std::function<std::string(uint64_t)>& path_of)
      : frozen_(frozen), path_of_(path_of), next_number_(frozen.next_id) {}

  // run: that the rows will be; 0: they are newer than all segments.
  Status write(const Memtable& memtable, uint32_t commit, uint64_t run) {
    log_.reset();
    // Commits go on, and may add tails: only find() may be called beside them. Rows of a table that
    // was dropped meanwhile went with it.
    for (const auto& table : frozen_.version->tables.all())
      if (const TableTail* tail = memtable.find(table->table->id))
        STRIDE_TRY(write_table(*tail, commit));
    if (!log_) return {};
    STRIDE_TRY(log_->reach(LogWriter::Reach::disk));
    position_ = log_->position();
    LogRecord record = log_->record();
    record.run = run;
    records_.push_back(record);
    return {};
  }
  std::vector<LogRecord> take_records() { return std::move(records_); }
  uint64_t end() const { return position_; }  // of the last log
  uint64_t next_id() const { return next_number_; }

 private:
  Status write_table(const TableTail& tail, uint32_t commit) {
    TableTail::Cursor cursor(tail);
    const TailRow* row = cursor.next(commit);
    while (row) {
      if (!log_) STRIDE_TRY(begin_log());
      LogRowsEncoder out(&log_->begin_frame());
      out.begin(tail.table()->id);
      for (uint64_t bytes = 0; row && bytes < max_frame_bytes; row = cursor.next(commit)) {
        out.add(row->kind, row->key(), row->value());
        bytes += row->key().size() + row->value().size();
      }
      out.end();
      STRIDE_TRY(log_->end_frame(LogWriter::Reach::memory, frozen_.next_id));
    }
    return {};
  }
  Status begin_log() {
    const uint64_t number = next_number_++;
    auto made = LogWriter::create(*frozen_.fs, path_of_(number), number, position_);
    if (!made.ok()) return made.status();
    log_ = std::move(*made);
    log_->fill_no_more();
    return {};
  }

  const FrozenDatabase& frozen_;
  const std::function<std::string(uint64_t)>& path_of_;
  std::unique_ptr<LogWriter> log_;  // null before the memtable's first row
  uint64_t position_ = 0;
  uint64_t next_number_;
  std::vector<LogRecord> records_;
};

}  // namespace

Result<std::vector<FrozenSegment>> frozen_segments(const FrozenDatabase& frozen) {
  std::vector<FrozenSegment> result;
  for (size_t i = 0; i < frozen.version->tables.size(); ++i) {
    for (const auto& segment : frozen.version->tables[i]->segments) {
      STRIDE_TRY(segment->segment().open_failure());
      result.push_back({segment->segment().path(), segment->record().segment, segment});
    }
  }
  return result;
}

Result<FileSource> open_frozen(const FrozenDatabase& frozen, const FrozenSegment& segment) {
  auto source = FileSource::open(*frozen.fs, segment.path);
  if (source.ok() || source.status().code() != StatusCode::not_found) return source;
  if (const Mapping* mapping = segment.segment->segment().mapping())
    return FileSource(segment.path, *mapping);
  return Status::corruption(segment.path, 0, "the segment's file is missing")
      .with_remedy("restore the file from a backup");
}

Result<ManifestState> write_frozen_logs(const FrozenDatabase& frozen,
                                        const std::function<std::string(uint64_t)>& path_of) {
  FrozenLogs logs(frozen, path_of);
  const Version& version = *frozen.version;
  for (size_t i = version.sealed.size(); i-- > 0;) {  // the oldest first
    const SealedMemtable& sealed = version.sealed[i];
    const uint32_t last = std::min(sealed.last_commit, sealed.rows->visible());
    STRIDE_TRY(logs.write(*sealed.rows, last, sealed.run));
  }
  if (version.memtable) STRIDE_TRY(logs.write(*version.memtable, frozen.commit, 0));
  const uint64_t end = logs.end(), next_id = logs.next_id();
  return manifest_state(version, logs.take_records(), end, next_id);
}

}  // namespace stride
