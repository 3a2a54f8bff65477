// How an edit becomes part of the database: files, then the manifest, then the version. All that
// can fail comes before the manifest's record, so that what is logged is also there, and nothing
// else.
#include <algorithm>
#include <unordered_set>

#include "engine/catalog/database_impl.h"
#include "engine/device/residency.h"
#include "engine/prefix/matcher.h"
#include "storage/no_throw.h"

namespace stride {

PendingEdit::~PendingEdit() {
  for (const auto& segment : segments) database.discard(*segment);
}

Status DatabaseImpl::apply(const Version& before, PendingEdit* pending, Durability durability) {
  pending->edit.next_id = next_id;
  uint64_t bytes = 0;
  std::vector<std::shared_ptr<IndexedSegment>> removed;
  std::shared_ptr<const Version> version = follow(before, *pending, &bytes, &removed);
  Status s = no_throw([&] { return log(pending->edit, !pending->segments.empty(), durability); });
  if (!s.ok()) {
    // Where nobody knows whether the edit is in the log, its files stay.
    if (!poison.ok()) pending->segments.clear();
    return s;
  }
  pending->segments.clear();
  for (const auto& segment : removed) segment->remove_when_unused();
  size_bytes = bytes + manifest->bytes();
  publish(std::move(version));
  return {};
}

// A synced edit makes every edit before it durable too, and so must their files be. A flushed one
// makes them survive the process.
Status DatabaseImpl::log(const VersionEdit& edit, bool new_files, Durability durability) {
  bool sync = durability == Durability::sync;
  if (durability != Durability::none) STRIDE_TRY(settle_writes(/*wait=*/true));
  if (sync) STRIDE_TRY(sync_files());
  if (sync && new_files) {
    Status s = no_throw([&] { return fs->sync_directory(path); });
    if (!s.ok()) return poison_with(std::move(s));
  }
  Status s = no_throw([&] { return manifest->append(edit, sync); });
  if (s.ok()) unsynced_edits = !sync;
  if (manifest->poisoned() || s.code() == StatusCode::poisoned ||
      (sync && s.code() == StatusCode::io_error))
    return poison_with(std::move(s));
  return s;
}

Status DatabaseImpl::sync_locked() {
  if (!unsynced_edits) return {};
  VersionEdit nothing;
  nothing.next_id = next_id;
  return log(nothing, /*new_files=*/false, Durability::sync);
}

Status DatabaseImpl::sync() {
  STRIDE_TRY(identity->check_process());
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  return sync_locked();
}

Status DatabaseImpl::settle_writes(bool wait) {
  Status failure;
  std::erase_if(being_written, [&](const std::shared_ptr<Segment>& segment) {
    if (!wait && segment->being_written()) return false;
    Status s = no_throw([&] { return segment->finish_write(); });
    if (!s.ok() && failure.ok()) failure = poison_with(std::move(s));
    return true;
  });
  return failure;
}

Status DatabaseImpl::sync_files() {
  for (const std::string& name : unsynced_files) {
    auto file = fs->open(name, OpenMode::write);
    if (file.status().code() == StatusCode::not_found) continue;  // compacted or dropped since
    Status s = file.ok() ? no_throw([&] { return (*file)->sync(); }) : file.status();
    if (!s.ok()) return poison_with(std::move(s));
  }
  if (!unsynced_files.empty()) {
    Status s = no_throw([&] { return fs->sync_directory(path); });
    if (!s.ok()) return poison_with(std::move(s));
  }
  unsynced_files.clear();
  return {};
}

void DatabaseImpl::discard(const Segment& segment) noexcept {
  std::erase(unsynced_files, segment.path());
  std::erase_if(being_written, [&](const auto& s) { return s.get() == &segment; });
  Status ignored = no_throw([&] { return fs->remove(segment.path()); });
}

Status DatabaseImpl::poison_with(Status s) noexcept {
  poison = plain_poison;
  (void)no_throw([&] {
    poison =
        Status(StatusCode::poisoned, "an earlier write or sync failed (" + s.message() +
                                         "): nothing more is written through this handle")
            .with_file(s.file())
            .with_remedy("check the disk, then open the database again; reads go on meanwhile");
    return Status();
  });
  return s;
}

std::shared_ptr<Version> DatabaseImpl::make_version() const {
  auto version = make_shared_here<Version>();
  version->database = identity;
  version->backend = backend;
  version->residency = residency;
  return version;
}

std::shared_ptr<const Version> DatabaseImpl::current_with(
    const std::vector<std::shared_ptr<const TableRecord>>& created) const {
  auto before = current();
  if (created.empty()) return before;
  auto version = make_version();
  version->tables = before->tables;
  for (const auto& table : created) {
    auto after = std::find_if(version->tables.begin(), version->tables.end(),
                              [&](const TableVersion& t) { return t.table->id > table->id; });
    version->tables.insert(after, empty_table(table));
  }
  return version;
}

std::shared_ptr<const Version> DatabaseImpl::follow(
    const Version& before, const PendingEdit& pending, uint64_t* segment_bytes,
    std::vector<std::shared_ptr<IndexedSegment>>* removed) const {
  const VersionEdit& edit = pending.edit;
  auto version = make_version();
  uint64_t bytes = 0;
  const std::unordered_set<uint64_t> gone(edit.removed.begin(), edit.removed.end());
  const std::unordered_set<uint32_t> dropped(edit.dropped.begin(), edit.dropped.end());
  for (const TableVersion& t : before.tables) {
    if (dropped.contains(t.table->id)) {
      removed->insert(removed->end(), t.segments.begin(), t.segments.end());
      continue;
    }
    TableVersion next = t;
    std::vector<std::shared_ptr<IndexedSegment>> added, kept;
    for (size_t i = 0; i < edit.added.size(); ++i)
      if (edit.added[i].table == t.table->id)
        added.push_back(std::make_shared<IndexedSegment>(fs, pending.segments[i], edit.added[i]));
    if (!gone.empty())
      for (const auto& s : t.segments)
        (gone.contains(s->record().segment) ? *removed : kept).push_back(s);
    bool loses = !gone.empty() && kept.size() < t.segments.size();
    if (loses) next.segments = SegmentList(kept);
    if (!added.empty()) next.segments = next.segments.with_newer(added);
    bytes += next.segments.file_bytes();
    if (t.matcher && (loses || !added.empty())) next.matcher = t.matcher->follow(*residency, next);
    version->tables.push_back(std::move(next));
  }
  *segment_bytes = bytes;
  return version;
}

void DatabaseImpl::publish(std::shared_ptr<const Version> version) noexcept {
  std::lock_guard guard(version_mutex_);
  version_.swap(version);
  // The old one is released after the lock: it may be the last pin of files.
}

}  // namespace stride
