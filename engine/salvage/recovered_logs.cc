#include "engine/salvage/recovered_logs.h"

#include <memory>
#include <optional>
#include <utility>

#include "storage/log_rows.h"
#include "storage/log_writer.h"
#include "storage/number.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

class LogRecovery {
 public:
  LogRecovery(FileSystem& fs, DatabaseSurvey* survey,
              const std::function<std::string(uint64_t)>& path_of, RecoveredLogs* recovered)
      : fs_(fs), survey_(*survey), path_of_(path_of), recovered_(*recovered) {}

  // All that no manifest tells of come last, so that their numbers are above those of all others.
  Status run() {
    for (const SurveyedLog& log : survey_.logs) {
      writer_.reset();
      for (const SurveyedFrame& frame : log.log.frames) {
        STRIDE_TRY(WorkWatch::check());
        STRIDE_TRY(take(log, frame));
      }
      if (!writer_) continue;
      STRIDE_TRY(writer_->reach(LogWriter::Reach::disk));
      position_ = writer_->position();
      LogRecord record = writer_->record();
      record.run = log.is_named ? log.record.run : 0;
      recovered_.records.push_back(record);
    }
    return {};
  }

 private:
  Status take(const SurveyedLog& log, const SurveyedFrame& frame) {
    LogRowsDecoder in(frame.payload);
    LogRows rows;
    while (in.next(&rows)) {
      const TableRecord* table = table_of(log, rows.table);
      if (table) STRIDE_TRY(write(rows, *table));
    }
    if (in.damaged()) ++recovered_.unfit_rows;
    return {};
  }

  // Null: it was dropped.
  const TableRecord* table_of(const SurveyedLog& log, uint32_t id) {
    const TableRecord* table = survey_.find(id);
    if (log.is_named && table) return table;
    if (id == 0 || survey_.dropped.contains(id)) return nullptr;
    if (log.is_named && survey_.is_manifest_whole) return nullptr;
    const std::string name = table ? table->name : "table-" + std::to_string(id);
    if (log.is_named) return &survey_.add_table({.id = id, .name = name});
    auto [found, is_new] = others_.try_emplace(id, 0);
    if (is_new) {
      TableRecord other = table ? *table : TableRecord{};
      other.id = 0;
      other.name = "log-of-" + name;
      found->second = survey_.add_table(std::move(other)).id;
    }
    return survey_.find(found->second);
  }

  static bool fits(const TableRecord& table, const LogRows& rows, uint32_t i) {
    const Bytes key = rows.key(i), value = rows.value(i);
    if (table.key_width != 0 && key.size() != table.key_width) return false;
    if (table.address_bits != 0) return false;  // commits to prefix tables are never small
    if (rows.kind(i) == EntryKind::tombstone) return value.empty();
    return table.numbers == NumberType::none || value.size() == width_of(table.numbers);
  }

  Status write(const LogRows& rows, const TableRecord& table) {
    if (!writer_) STRIDE_TRY(begin_log());
    LogRowsEncoder out(&writer_->begin_frame());
    out.begin(table.id);
    uint64_t written = 0;
    for (uint32_t i = 0; i < rows.count; ++i) {
      if (!fits(table, rows, i)) continue;
      out.add(rows.kind(i), rows.key(i), rows.value(i));
      ++written;
    }
    recovered_.unfit_rows += rows.count - written;
    if (written == 0) {
      writer_->drop_frame();
      return {};
    }
    out.end();
    recovered_.rows[table.id] += written;
    return writer_->end_frame(LogWriter::Reach::memory, next_id_);
  }

  Status begin_log() {
    const uint64_t number = survey_.next_id++;
    auto made = LogWriter::create(fs_, path_of_(number), number, position_);
    if (!made.ok()) return made.status();
    writer_ = std::move(*made);
    writer_->fill_no_more();
    return {};
  }

  FileSystem& fs_;
  DatabaseSurvey& survey_;
  const std::function<std::string(uint64_t)>& path_of_;
  RecoveredLogs& recovered_;
  std::unique_ptr<LogWriter> writer_;    // null before a log's first row
  std::map<uint32_t, uint32_t> others_;  // tables of rows of logs that no manifest names
  uint64_t position_ = 0;
  // Frames come after no edit of the new manifest.
  const uint64_t next_id_ = 1;
};

}  // namespace

Status recover_logs(FileSystem& fs, DatabaseSurvey* survey,
                    const std::function<std::string(uint64_t)>& path_of, RecoveredLogs* recovered) {
  return LogRecovery(fs, survey, path_of, recovered).run();
}

}  // namespace stride
