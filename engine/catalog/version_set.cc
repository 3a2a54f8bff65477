#include "engine/catalog/version_set.h"

#include <algorithm>
#include <utility>

#include "engine/catalog/next_version.h"
#include "engine/catalog/recovery.h"
#include "engine/memtable/memtable.h"
#include "storage/current_file.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

std::shared_ptr<const Version> blank_version(const DatabaseContext& context) {
  auto version = make_shared_here<Version>();
  version->database = context.identity;
  version->backend = context.backend;
  version->executor = context.executor;
  version->index = std::make_shared<const TableIndex>();
  return version;
}

}  // namespace

ManifestState manifest_state(const Version& version, std::vector<LogRecord> logs,
                             uint64_t synced_logs, uint64_t next_id) {
  ManifestState state{.logs = std::move(logs), .synced_logs = synced_logs, .next_id = next_id};
  for (size_t i = 0; i < version.tables.size(); ++i) {
    const TableVersion& table = *version.tables[i];
    state.tables.push_back(*table.table);
    for (const auto& segment : table.segments) state.segments.push_back(segment->record());
  }
  std::stable_sort(state.segments.begin(), state.segments.end(),
                   [](const auto& a, const auto& b) { return a.run < b.run; });
  return state;
}

VersionSet::VersionSet(const DatabaseContext& context, UnsyncedFiles& unsynced, Poison& poison)
    : context_(context),
      unsynced_(unsynced),
      poison_(poison),
      obsolete_(std::make_shared<ObsoleteFiles>(context.fs, context.path)),
      left_in_parent_(blank_version(context)),
      published_(left_in_parent_) {}

// A reader takes its lease before it reads, so that what it reads of stays. Where it cannot have
// one, because it may not write into the directory, say, it reads without.
Status VersionSet::open() {
  if (context_.options.read_only) {
    STRIDE_TRY(read_current(*context_.fs, context_.path).status());
  }
  if (context_.takes_lease) {
    auto lease = ReaderLease::take(*context_.fs, context_.path);
    if (lease.ok()) lease_ = std::move(*lease);
  }
  auto recovered = recover(context_, *left_in_parent_);
  if (!recovered.ok()) return recovered.status();
  for (std::string& path : recovered->unsynced_files) unsynced_.add_found(std::move(path));
  manifest_ = std::move(recovered->manifest);
  identity_ = recovered->identity;
  has_unsynced_edits_ = recovered->has_unsynced_edits;
  logs_ = std::move(recovered->logs);
  if (context_.options.read_only) follower_ = std::make_unique<Follower>(context_, &*recovered);
  recovered_logs_ = std::move(recovered->replayed);
  recovered_logs_.logs.clear();
  log_bytes_ = recovered_logs_.unsealed_bytes;
  removed_logs_ = std::move(recovered->removed_logs);
  logged_next_id_ = recovered->logged_next_id;
  synced_logs_ = recovered->synced_logs;
  next_id_ = recovered->next_id;
  count_bytes(*recovered->version);
  if (follower_) return open_reader(&*recovered);
  published_.set(std::move(recovered->version));
  if (!recovered->orphans.empty()) obsolete_->look(recovered->position);
  for (std::string& path : recovered->orphans)
    obsolete_->remove(std::move(path), recovered->position);
  return {};
}

// What was read of the logs may have come after edits that were not there yet when the manifest was
// read.
Status VersionSet::open_reader(RecoveredDatabase* recovered) {
  auto version = make_shared_here<Version>(*recovered->version);
  version->lease = lease_;
  for (SealedMemtable& sealed : version->sealed) sealed.last_commit = sealed.rows->visible();
  seen_.push_back({version, recovered->position});
  published_.set(std::move(version));
  return refresh();
}

Status VersionSet::refresh() {
  if (closed_) return still_writable();
  if (!follower_) return {};
  std::shared_ptr<const Version> before = published_.get();
  auto step = follower_->read_on(before);
  if (!step.ok()) return step.status();
  const bool is_new = step->version != before;
  if (is_new) {
    seen_.push_back({step->version, follower_->position()});
    count_bytes(*step->version);
    logs_ = follower_->logs();
    has_unsynced_edits_ = follower_->has_unsynced_edits();
    identity_ = follower_->identity();
    next_id_ = follower_->next_id();
    unsynced_.set_found(follower_->unsynced_files());
  }
  log_bytes_ = follower_->unsealed_log_bytes();
  published_.set(std::move(step->version), [&] { step->publish(); });
  before.reset();  // it needs no lease any more, unless a snapshot holds it
  move_lease();
  return {};
}

void VersionSet::move_lease() {
  std::erase_if(seen_, [](const Seen& seen) { return seen.version.expired(); });
  if (lease_ && !seen_.empty()) lease_->move_to(seen_.front().position);
}

// Where the handle is poisoned too: once the directory's lock is released, others may write.
Status VersionSet::close() {
  closed_ = true;
  Status s = unsynced_.finish_writes(/*wait=*/true, /*logs=*/true);
  if (s.ok() && (has_unsynced_edits_ || unsynced_.has_unsynced_log())) s = poison_.status();
  if (manifest_ && !poison_.is_set()) s = no_throw([&] { return sync(); });
  manifest_.reset();
  if (follower_) close_reader();
  return s;
}

// The lease stays as long as a snapshot does.
void VersionSet::close_reader() {
  auto version = make_shared_here<Version>(*published_.get());
  version->lease.reset();
  published_.set(std::move(version));
  seen_.clear();
  lease_.reset();
  follower_.reset();
}

std::shared_ptr<const Version> VersionSet::current() const noexcept {
  if (!context_.identity->opened_in.is_here()) return left_in_parent_;
  return published_.get();
}

std::shared_ptr<const Version> VersionSet::current(uint32_t* commit) const noexcept {
  *commit = 0;
  if (!context_.identity->opened_in.is_here()) return left_in_parent_;
  return published_.get(commit);
}

Status VersionSet::writable() {
  if (!closed_) Status ignored = unsynced_.finish_writes(/*wait=*/false, /*logs=*/false);
  return still_writable();
}

Status VersionSet::still_writable() const {
  if (closed_)
    return Status(StatusCode::closed, "the database has been closed").with_file(context_.path);
  if (context_.options.read_only)
    return Status(StatusCode::read_only, "the database was opened read-only")
        .with_file(context_.path)
        .with_remedy("open it without read_only to write");
  return poison_.status();
}

// All that can fail comes before the manifest's record, so that what is logged is also there, and
// nothing else.
Status VersionSet::apply(const Version& before, PendingEdit* pending, Durability durability) {
  pending->edit.next_id = next_id_;
  give_up_lost_logs(&pending->edit);
  std::shared_ptr<const Version> version = next_version(before, *pending);
  logs_.reserve(logs_.size() + pending->edit.created_logs.size());
  removed_logs_.reserve(removed_logs_.size() + pending->edit.removed_logs.size());
  const bool new_files = !pending->segments.empty() || !pending->edit.created_logs.empty();
  unsynced_.reserve(pending->unsynced.size());
  for (auto& [segment, path] : pending->unsynced)
    unsynced_.add(std::move(segment), std::move(path));
  pending->unsynced.clear();
  Status s = no_throw([&] { return log(pending, new_files, durability); });
  if (!s.ok()) {
    // Where nobody knows whether the edit is in the log, its files stay.
    if (poison_.is_set()) pending->segments.clear();
    return s;
  }
  pending->segments.clear();
  change_logs(pending->edit);
  look_at_readers(*pending, durability);
  for (const auto& segment : pending->obsolete)
    segment->file().remove_when_unused(obsolete_, manifest_->position());
  recovered_logs_.lost.clear();
  if (durability == Durability::sync) {
    remove_log_files();
    rewrite_grown_manifest(*version);
  }
  count_bytes(*version);
  published_.set(std::move(version));
  return {};
}

// Their rows came after others that a power loss has taken. Whatever is changed next is the end of
// them.
void VersionSet::give_up_lost_logs(VersionEdit* edit) const {
  for (uint64_t log : recovered_logs_.lost)
    if (std::find(edit->removed_logs.begin(), edit->removed_logs.end(), log) ==
        edit->removed_logs.end())
      edit->removed_logs.push_back(log);
}

void VersionSet::count_bytes(const Version& version) noexcept {
  uint64_t bytes = version.file_bytes + (manifest_ ? manifest_->bytes() : 0);
  for (const SealedMemtable& sealed : version.sealed) bytes += sealed.log_bytes;
  size_bytes_ = bytes;
  segment_bytes_ = version.file_bytes;
}

void VersionSet::change_logs(const VersionEdit& edit) noexcept {
  for (uint64_t number : edit.removed_logs) {
    std::erase_if(logs_, [&](const LogRecord& log) { return log.number == number; });
    removed_logs_.push_back(number);
  }
  logs_.insert(logs_.end(), edit.created_logs.begin(), edit.created_logs.end());
  for (const SealedLog& sealed : edit.sealed_logs)
    for (LogRecord& log : logs_)
      if (log.number == sealed.number) log.run = sealed.run;
  synced_logs_ = logs_.empty() ? 0 : edit.synced_logs.value_or(synced_logs_);
}

// What fails is tried again after more edits. Whichever manifest is in charge has all edits so far.
void VersionSet::rewrite_grown_manifest(const Version& version) noexcept {
  if (!manifest_->may_have_grown()) return;
  Status s = no_throw([&] {
    return manifest_->rewrite_grown(manifest_state(version, logs_, synced_logs_, next_id_));
  });
  if (manifest_->poisoned()) Status ignored = poison_.set(std::move(s));
}

// Once for all files of an edit, or of several. Files that are kept go when a later edit looks
// again.
void VersionSet::look_at_readers(const PendingEdit& pending, Durability durability) noexcept {
  constexpr uint64_t log_bytes = 4 << 20;  // that one has that is sealed for its size
  const bool syncs = durability == Durability::sync;
  for (const auto& segment : pending.obsolete) obsolete_->expect(1, segment->record().bytes);
  if (syncs) obsolete_->expect(removed_logs_.size(), removed_logs_.size() * log_bytes);
  if (obsolete_->is_look_due() || (syncs && obsolete_->has_waiting()))
    obsolete_->look(manifest_->position());
}

// A file that can't be removed goes when the database is next opened.
void VersionSet::remove_log_files() noexcept {
  const ManifestPosition since = manifest_->position();
  for (uint64_t number : removed_logs_)
    Status ignored = no_throw([&] {
      obsolete_->remove(context_.log_path(number), since);
      return Status();
    });
  removed_logs_.clear();
}

// A synced edit makes every edit before it durable too, and so must their files be. A flushed one
// makes them survive the process.
Status VersionSet::log(PendingEdit* pending, bool new_files, Durability durability) {
  VersionEdit& edit = pending->edit;
  const bool sync = durability == Durability::sync;
  // Where this is kept, what was committed before must not be lost: segments are looked at when the
  // database is opened, and logs are synced first.
  const bool brings_logs = !pending->only_moves_rows;
  if (!sync && brings_logs) STRIDE_TRY(unsynced_.sync_logs());
  if (durability != Durability::none)
    STRIDE_TRY(unsynced_.finish_writes(/*wait=*/true, /*logs=*/brings_logs));
  if (sync) STRIDE_TRY(unsynced_.sync(new_files, /*logs=*/brings_logs));
  if (brings_logs && !logs_.empty()) {
    const uint64_t end = unsynced_.logs_end().value_or(recovered_logs_.end);
    if (end != synced_logs_) edit.synced_logs = end;
  }
  STRIDE_TRY(WorkWatch::check());  // from here on it is committed
  Status s = no_throw([&] { return manifest_->append(edit, sync); });
  if (s.ok()) has_unsynced_edits_ = !sync;
  if (s.ok()) logged_next_id_ = edit.next_id;
  if (manifest_->poisoned() || s.code() == StatusCode::poisoned ||
      (sync && s.code() == StatusCode::io_error))
    return poison_.set(std::move(s));
  return s;
}

Status VersionSet::sync() {
  if (!has_unsynced_edits_) {
    STRIDE_TRY(unsynced_.sync(/*new_names=*/false, /*logs=*/true));
    look_behind();
    return {};
  }
  PendingEdit nothing(unsynced_);
  nothing.edit.next_id = next_id_;
  STRIDE_TRY(log(&nothing, /*new_files=*/false, Durability::sync));
  change_logs(nothing.edit);
  look_behind();
  remove_log_files();
  return {};
}

void VersionSet::look_behind() noexcept {
  if (obsolete_->has_expected() || obsolete_->has_waiting() || !removed_logs_.empty())
    obsolete_->look(manifest_->position());
}

}  // namespace stride
