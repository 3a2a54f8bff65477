#include "engine/memtable/log_replay.h"

#include <optional>
#include <string>
#include <utility>

#include "engine/memtable/memtable.h"
#include "engine/memtable/memtable_rows.h"
#include "storage/log_reader.h"
#include "storage/log_rows.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

constexpr int read_only_attempts = 10;

Status misfit(const std::string& path, uint64_t offset, const std::string& what) {
  return Status::corruption(path, offset, "a frame of the log " + what)
      .with_remedy("restore the database from a backup");
}
Status misfit(const LogReader& log, uint64_t offset, const std::string& what) {
  return misfit(log.path(), offset, what);
}

bool fits_row(const TableRecord& table, const LogRows& rows, uint32_t i) {
  const Bytes key = rows.key(i), value = rows.value(i);
  if (table.key_width != 0 && key.size() != table.key_width) return false;
  if (table.address_bits != 0) return false;  // commits to prefix tables are never small
  if (rows.kind(i) == EntryKind::tombstone) return value.empty();
  return table.numbers == NumberType::none || value.size() == width_of(table.numbers);
}

class Replay {
 public:
  Replay(const DatabaseContext& context, uint64_t next_id, Version* version, ReplayedLogs* replayed)
      : context_(context), next_id_(next_id), version_(*version), replayed_(*replayed) {}

  // One log, and all that it says of those before it.
  Status run(const LogRecord& record) {
    auto log = LogReader::open(*context_.fs, context_.log_path(record.number), record);
    if (!log.ok()) return log.status();
    if (any_ && log->position() < replayed_.end)
      return misfit(*log, 0, "begins before the log before it ends");
    if (!replayed_.lost.empty() || (any_ && log->position() != replayed_.end))
      return lose(*log, record);
    any_ = true;
    uint64_t offset = log->offset();
    bool ends_with_manifest = false;
    const std::shared_ptr<Memtable>& rows = memtable_of(record);
    Memtable& memtable = *rows;
    while (std::optional<LogFrame> frame = log->next()) {
      if (frame->header.kind != log_rows)
        return Status(StatusCode::unsupported_version,
                      "unknown frame kind " + std::to_string(frame->header.kind))
            .with_file(log->path())
            .with_offset(offset)
            .with_remedy("open the database with a newer StrideDB");
      // It comes after an edit that the manifest has lost; and whatever follows it does, even what
      // was on stable storage.
      if (frame->header.next_id > next_id_) {
        log->end_before(offset);
        ends_with_manifest = true;
        break;
      }
      STRIDE_TRY(insert(*log, offset, frame->payload, &memtable));
      offset = log->offset();
    }
    replayed_.end = log->position();
    last_ = {log->path(), offset};
    if (!ends_with_manifest && log->knows_synced_beyond(replayed_.end))
      return damaged(*log, offset);
    if (record.run != 0) replayed_.sealed_end = replayed_.end;
    replayed_.logs.push_back({record, log->offset(), rows});
    count(record, log->offset(), memtable);
    return context_.options.read_only ? Status() : log->make_durable(*context_.fs);
  }

  // Precondition: all logs have been run. synced: ManifestState::synced_logs.
  Status check_end(uint64_t synced) const {
    if (!any_ || replayed_.end >= synced) return {};
    return misfit(last_.path, last_.offset, "is damaged, and the manifest says that it was whole");
  }

 private:
  static Status damaged(const LogReader& log, uint64_t offset) {
    return misfit(log, offset, "is damaged, and later ones say that it was whole");
  }
  // A log before this one is shorter than it was. Unless this one knows that it was all on stable
  // storage, a power loss has taken the rest.
  Status lose(const LogReader& log, const LogRecord& record) {
    if (log.knows_synced_beyond(replayed_.end)) return damaged(log, log.offset());
    replayed_.lost.push_back(record.number);
    replayed_.logs.push_back({record, 0, memtable_of(record)});
    return {};
  }
  // Logs of one run lie together.
  const std::shared_ptr<Memtable>& memtable_of(const LogRecord& record) {
    if (record.run == 0) return version_.memtable;
    if (version_.sealed.empty() || version_.sealed.front().run != record.run)
      version_.sealed.insert(version_.sealed.begin(),
                             {record.run, std::make_shared<Memtable>(), 0, 0});
    return version_.sealed.front().rows;
  }
  void count(const LogRecord& record, uint64_t bytes, const Memtable& memtable) {
    if (record.run == 0) {
      replayed_.unsealed_bytes += bytes;
      return;
    }
    version_.sealed.front().memory_bytes = memtable.bytes();
    version_.sealed.front().log_bytes += bytes;
  }
  Status insert(const LogReader& log, uint64_t offset, Bytes payload, Memtable* memtable) {
    const uint32_t commit = memtable->next_commit();
    STRIDE_TRY(insert_frame(log.path(), offset, payload, version_, commit, memtable));
    memtable->publish(commit);
    return {};
  }

  const DatabaseContext& context_;
  const uint64_t next_id_;
  Version& version_;
  ReplayedLogs& replayed_;
  bool any_ = false;  // a log has been read
  struct {
    std::string path;
    uint64_t offset = 0;
  } last_;  // where the last log that counts ends
};

Result<LogReader> open_log(const DatabaseContext& context, const LogRecord& record) {
  auto log = LogReader::open(*context.fs, context.log_path(record.number), record);
  if (log.status().code() != StatusCode::not_found) return log;
  return Status::corruption(log.status().file(), 0, "the write-ahead log is missing")
      .with_remedy("call compact(), which writes its rows to a new file");
}

// Reads the log's frames, from the position on at which the log before it ended.
Status verify_log(const DatabaseContext& context, const LogRecord& record,
                  std::optional<uint64_t> begin, uint64_t end) {
  auto log = open_log(context, record);
  if (!log.ok()) return log.status();
  if (begin && log->position() != *begin)
    return misfit(*log, 0, "is not where the log before it ends");
  while (log->next()) STRIDE_TRY(WorkWatch::check());
  if (log->position() < end)
    return Status::corruption(log->path(), log->offset(), "a frame of the log is damaged")
        .with_remedy("call compact(), which writes its rows to a new file");
  return {};
}

}  // namespace

Status insert_frame(const std::string& path, uint64_t offset, Bytes payload, const Version& version,
                    uint32_t commit, Memtable* memtable) {
  LogRowsDecoder in(payload);
  LogRows rows;
  while (in.next(&rows)) {
    const TableVersion* table = version.find(rows.table);
    if (!table) continue;
    TableTail& tail = memtable->tail(table->table);
    for (uint32_t i = 0; i < rows.count; ++i)
      if (!fits_row(*table->table, rows, i))
        return misfit(path, offset, "does not fit table '" + table->table->name + "'");
    insert_rows(rows, commit, &tail);
  }
  if (in.damaged()) return misfit(path, offset, "holds no rows, though its checksum matches");
  return {};
}

Status verify_logs(const DatabaseContext& context, const std::vector<LogRecord>& logs,
                   uint64_t end) {
  std::optional<uint64_t> begin;
  for (size_t i = 0; i < logs.size(); ++i) {
    uint64_t its_end = end;
    if (i + 1 < logs.size()) {
      auto next = open_log(context, logs[i + 1]);
      if (!next.ok()) return next.status();
      its_end = next->position();
    }
    STRIDE_TRY(verify_log(context, logs[i], begin, its_end));
    begin = its_end;
  }
  return {};
}

// A reader beside a writer may read the end of a file later than its middle, and find frames there
// that know of others which it has not seen.
Status replay_logs(const DatabaseContext& context, const ManifestState& manifest, Version* version,
                   ReplayedLogs* replayed) {
  for (int attempt = 1;; ++attempt) {
    version->memtable = std::make_shared<Memtable>();
    version->sealed.clear();
    *replayed = {};
    Replay replay(context, manifest.next_id, version, replayed);
    Status s;
    for (size_t i = 0; s.ok() && i < manifest.logs.size(); ++i) s = replay.run(manifest.logs[i]);
    if (s.ok()) s = replay.check_end(manifest.synced_logs);
    const bool again = context.options.read_only && s.code() == StatusCode::corruption;
    if (!again || attempt == read_only_attempts) return s;
  }
}

}  // namespace stride
