#include "engine/catalog/recovery.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <unordered_set>

#include "engine/catalog/next_version.h"
#include "engine/catalog/segment_check.h"
#include "engine/catalog/stored_segment.h"
#include "engine/memtable/log_replay.h"
#include "engine/memtable/memtable.h"
#include "storage/first_failure.h"
#include "storage/manifest_format.h"
#include "storage/manifest_replay.h"

namespace stride {
namespace {

// No database of ours has come this far, so a file with a larger id is not one of its files.
constexpr uint64_t min_foreign_id = uint64_t{1} << 31;

// Whether a power loss can have taken or torn a file. What else keeps it from being read, such as a
// lack of memory or of descriptors, is no reason to give up what it holds.
bool may_be_lost(const Status& s) {
  return s.code() == StatusCode::corruption || s.code() == StatusCode::not_found;
}

class Recovery {
 public:
  explicit Recovery(const DatabaseContext& context) : context_(context), fs_(*context.fs) {}

  Status run(const Version& blank);
  RecoveredDatabase take() { return std::move(found_); }
  const std::vector<uint64_t>& missing_segments() const { return found_.missing_segments; }

 private:
  Status read_manifest(std::vector<UnsyncedEdit>* unsynced);
  Status apply_unsynced(const std::vector<UnsyncedEdit>& edits);
  Status open_files(const Version& tables, std::vector<std::shared_ptr<Segment>>* opened);
  Status open_segments(const Version& blank);
  // Puts what the logs hold into the memtable of the version.
  Status replay_logs(Version* version);
  Status find_orphans();

  const DatabaseContext& context_;
  FileSystem& fs_;
  ManifestState state_;
  std::vector<VersionEdit> counted_;  // that were not synced
  RecoveredDatabase found_;
};

Status Recovery::run(const Version& blank) {
  std::vector<UnsyncedEdit> unsynced;
  STRIDE_TRY(read_manifest(&unsynced));
  STRIDE_TRY(apply_unsynced(unsynced));
  found_.next_id = found_.logged_next_id = state_.next_id;
  found_.synced_logs = state_.synced_logs;
  if (context_.options.read_only) {
    found_.follower = std::make_unique<ManifestFollower>(
        fs_, context_.path, found_.position, ManifestReplay(state_), std::move(counted_));
    found_.follower->set_identity(found_.identity);
  }
  STRIDE_TRY(open_segments(blank));
  return context_.options.read_only ? Status() : find_orphans();
}

Status Recovery::read_manifest(std::vector<UnsyncedEdit>* unsynced) {
  const Options& options = context_.options;
  auto recovered = Manifest::recover(fs_, context_.path, options.read_only);
  if (!recovered.ok() && recovered.status().code() == StatusCode::not_found &&
      options.create_if_missing && !options.read_only) {
    recovered = Manifest::create(fs_, context_.path, draw_identity());
  } else if (recovered.ok() && options.error_if_exists) {
    return Status(StatusCode::already_exists, "there is a database already")
        .with_file(context_.path);
  }
  if (!recovered.ok()) return recovered.status();
  found_.manifest = std::move(recovered->manifest);
  found_.identity = recovered->identity;
  found_.position = recovered->end;
  state_ = std::move(recovered->state);
  *unsynced = std::move(recovered->unsynced);
  return {};
}

// Edits that were not synced when the process ended count as far as their files are whole.
Status Recovery::apply_unsynced(const std::vector<UnsyncedEdit>& edits) {
  if (edits.empty()) return {};
  ManifestReplay replay(state_);
  Status s;
  for (size_t i = 0; s.ok() && i < edits.size(); ++i) {
    const VersionEdit& edit = edits[i].edit;
    for (const SegmentRecord& record : edit.added)
      found_.unsynced_files.push_back(context_.segment_path(record.segment));
    s = check_whole(context_, edit, replay);
    if (s.ok()) s = replay.apply(edit);
    if (s.ok()) found_.has_unsynced_edits = true;
    if (s.ok() && context_.options.read_only) counted_.push_back(edit);
    if (s.ok())
      found_.removed_logs.insert(found_.removed_logs.end(), edit.removed_logs.begin(),
                                 edit.removed_logs.end());
    // A writer may have made segments of a log meanwhile: what it says now has to be read.
    if (s.code() == StatusCode::not_found && context_.options.read_only)
      found_.missing_segments.push_back(edit.next_id);
    if (!s.ok() && !may_be_lost(s)) return s;
    if (s.ok()) continue;
    found_.position.offset = edits[i].offset;
    if (found_.manifest) STRIDE_TRY(found_.manifest->cut(edits[i].offset));
  }
  state_ = replay.state();
  return {};
}

Status Recovery::open_files(const Version& tables, std::vector<std::shared_ptr<Segment>>* opened) {
  opened->resize(state_.segments.size());
  std::mutex mutex;  // guards missing_segments
  FirstFailure failure;
  context_.backend->parallel_for(opened->size(), 8, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const SegmentRecord& record = state_.segments[i];
      auto segment = open_segment(context_, record, *tables.find(record.table)->table);
      if (segment.ok()) {
        (*opened)[i] = std::move(*segment);
        continue;
      }
      if (segment.status().code() == StatusCode::not_found) {
        std::lock_guard guard(mutex);
        found_.missing_segments.push_back(record.segment);
      }
      std::string file = context_.segment_path(record.segment);
      Status s = as_damage(segment.status(), file);
      if (!is_damage(s)) failure.report(s);
      (*opened)[i] = Segment::unreadable(file, record.segment, std::move(s));
    }
  });
  return failure.status();
}

Status Recovery::open_segments(const Version& blank) {
  std::vector<std::shared_ptr<const TableRecord>> records;
  for (TableRecord& t : state_.tables)
    records.push_back(std::make_shared<const TableRecord>(std::move(t)));
  auto version =
      make_shared_here<Version>(*with_tables(make_shared_here<const Version>(blank), records));
  std::vector<std::shared_ptr<Segment>> opened;
  STRIDE_TRY(open_files(*version, &opened));
  std::sort(found_.missing_segments.begin(), found_.missing_segments.end());
  std::map<uint32_t, std::vector<std::shared_ptr<IndexedSegment>>> segments;  // by table
  for (size_t i = opened.size(); i-- > 0;) {
    const SegmentRecord& record = state_.segments[i];
    auto file = std::make_shared<SegmentFile>(context_.segment_path(record.segment));
    segments[record.table].push_back(
        std::make_shared<IndexedSegment>(std::move(file), std::move(opened[i]), record));
  }
  std::vector<TableList::Replacement> filled;
  for (size_t i = 0; i < version->tables.size(); ++i) {
    auto found = segments.find(version->tables[i]->table->id);
    if (found == segments.end()) continue;
    auto table = std::make_shared<TableVersion>(*version->tables[i]);
    table->segments = SegmentList(found->second);
    version->file_bytes += table->segments.file_bytes();
    version->resident_bytes += table->segments.resident_bytes();
    filled.emplace_back(i, std::move(table));
  }
  version->tables = version->tables.with_replaced(filled);
  STRIDE_TRY(replay_logs(version.get()));
  found_.version = std::move(version);
  return {};
}

Status Recovery::replay_logs(Version* version) {
  found_.logs = state_.logs;
  if (!context_.options.read_only && context_.options.memtable_bytes > 0)
    version->memtable = std::make_shared<Memtable>();
  if (state_.logs.empty()) return {};
  Status s = ::stride::replay_logs(context_, state_, version, &found_.replayed);
  if (s.code() != StatusCode::not_found) return s;
  s = Status::corruption(s.file(), 0, "the write-ahead log is missing")
          .with_remedy("restore the file from a backup");
  if (!context_.options.read_only) return s;
  // A writer may have made a segment of it meanwhile.
  found_.missing_segments.push_back(state_.logs.front().number);
  found_.missing_log = s;
  return {};
}

// Files of commits and compactions that were cut off before their edit was written, and those that
// readers may still have needed. No name is used again that a power loss could bring back: the
// unsynced edit of a new file would be taken to mean the old one. So what was removed earlier is
// made sure to be gone, and the names that are there count as used.
Status Recovery::find_orphans() {
  STRIDE_TRY(fs_.sync_directory(context_.path));
  auto names = fs_.list(context_.path);
  if (!names.ok()) return names.status();
  std::unordered_set<uint64_t> named;
  for (const SegmentRecord& s : state_.segments) named.insert(s.segment);
  std::unordered_set<uint64_t> logs;
  for (const LogRecord& log : state_.logs) logs.insert(log.number);
  logs.insert(found_.removed_logs.begin(), found_.removed_logs.end());
  for (const std::string& name : *names) {
    auto segment = segment_number(name);
    auto id = segment ? segment : log_number(name);
    if (!id || *id >= min_foreign_id) continue;
    found_.next_id = std::max(found_.next_id, *id + 1);
    const bool is_named = segment ? named.contains(*id) : logs.contains(*id);
    // Where a segment is missing, this may be the manifest of another database, or an old one.
    if (!is_named && found_.missing_segments.empty())
      found_.orphans.push_back(context_.path + "/" + name);
  }
  return {};
}

}  // namespace

// A read-only handle may meet a writer that compacts: what the manifest named a moment ago is gone,
// and reading the manifest again finds what took its place. What stays missing is lost.
Result<RecoveredDatabase> recover(const DatabaseContext& context, const Version& blank) {
  constexpr std::chrono::seconds patience{10};
  const auto begin = std::chrono::steady_clock::now();
  std::vector<uint64_t> missing_before;
  for (;;) {
    Recovery recovery(context);
    STRIDE_TRY(recovery.run(blank));
    const std::vector<uint64_t>& missing = recovery.missing_segments();
    if (!context.options.read_only || missing.empty() || missing == missing_before) {
      RecoveredDatabase found = recovery.take();
      STRIDE_TRY(found.missing_log);
      return found;
    }
    if (std::chrono::steady_clock::now() - begin > patience)
      return Status(StatusCode::unavailable, "another process changes the files too fast")
          .with_file(context.path)
          .with_remedy("open it again");
    missing_before = missing;
  }
}

}  // namespace stride
