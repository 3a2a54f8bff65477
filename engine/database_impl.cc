#include "engine/database_impl.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "engine/matcher.h"
#include "engine/merge.h"
#include "engine/no_throw.h"
#include "engine/residency.h"
#include "engine/segment_builder.h"

namespace stride {
namespace {

uint64_t half_of_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 2;
}

// Of a run that is cut into segments.
constexpr uint64_t least_part_bytes = 16 << 20;

// No database of ours has come this far: it is not one of its files.
constexpr uint64_t foreign_id = uint64_t{1} << 31;

WaitFor wait_for(Durability durability) {
  switch (durability) {
    case Durability::sync:
      return WaitFor::sync;
    case Durability::flush:
      return WaitFor::write;
    case Durability::none:
      break;
  }
  return WaitFor::space;
}

TableVersion empty_table(const TableRecord& record) {
  return {std::make_shared<const TableRecord>(record),
          {},
          record.address_bits ? std::make_shared<MatcherSlot>() : nullptr};
}

}  // namespace

Status DatabaseImpl::check_table_options(const std::string& name, const TableOptions& options) {
  if (name.empty() || name.size() > 255 || name.find('\0') != std::string::npos)
    return Status::invalid("a table's name has 1 to 255 bytes and no NUL; this one has " +
                           std::to_string(name.size()) + " bytes");
  if (options.key_width > max_key_bytes)
    return Status::invalid("key_width " + std::to_string(options.key_width) +
                           " is too large; at most 65535 bytes are possible");
  if (options.address_bits > max_address_bits && options.address_bits != byte_strings)
    return Status::invalid("address_bits " + std::to_string(options.address_bits) +
                           " is too large; at most 65535 bits are possible, or byte_strings");
  if (options.address_bits && options.key_width)
    return Status::invalid(
               "key_width " + std::to_string(options.key_width) +
               " is given for a prefix table, whose keys are as wide as address_bits says")
        .with_remedy("leave key_width at 0");
  const NumberType numbers = options.numbers;
  if (numbers > NumberType::f64)
    return Status::invalid("numbers of type " + std::string(to_string(numbers)) +
                           " cannot be the values of a table")
        .with_remedy("use i32, i64, f32 or f64");
  if (options.overflow == Overflow::wrap && !is_integer(numbers))
    return Status::invalid("Overflow::wrap is given for a table of " +
                           std::string(to_string(numbers)) + ", and only integers wrap")
        .with_remedy("use i32 or i64, or leave overflow as it is");
  return {};
}

std::string DatabaseImpl::segment_path(uint64_t id) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%06llu.seg", static_cast<unsigned long long>(id));
  return path + name;
}

Result<std::shared_ptr<DatabaseImpl>> DatabaseImpl::open(const std::string& path,
                                                         const Options& options) {
  STRIDE_TRY(options.tree.check());
  auto impl = std::make_shared<DatabaseImpl>();
  impl->path = path;
  impl->options = options;
  impl->fs = options.file_system ? options.file_system : &FileSystem::posix();
  if (!impl->options.memory_limit_bytes) impl->options.memory_limit_bytes = half_of_memory();
  auto residency = Residency::make(options);
  if (!residency.ok()) return residency.status();
  impl->residency = std::move(*residency);
  impl->backend = impl->residency->host();
  if (!options.read_only) {
    if (options.create_if_missing) STRIDE_TRY(impl->fs->create_directory(path));
    auto lock = impl->fs->lock(path + "/LOCK");
    if (!lock.ok()) return lock.status();
    impl->lock = std::move(*lock);
  }
  // A read-only handle may meet a writer that compacts: what the manifest named a moment ago is
  // gone, and reading the manifest again finds what took its place.
  Status s = impl->recover();
  for (int again = 0; options.read_only && again < 10 && !s.ok(); ++again) {
    if (s.code() != StatusCode::not_found || !impl->manifest_was_read) break;
    s = impl->recover();
  }
  if (!s.ok()) return s;
  impl->residency->set_costs(read_costs(*impl->fs, path));
  return impl;
}

Status DatabaseImpl::recover() {
  auto recovered = Manifest::recover(*fs, path, options.read_only);
  if (!recovered.ok() && recovered.status().code() == StatusCode::not_found &&
      options.create_if_missing && !options.read_only) {
    recovered = Manifest::create(*fs, path);
  } else if (recovered.ok() && options.error_if_exists) {
    return Status(StatusCode::already_exists, "there is a database already").with_file(path);
  }
  if (!recovered.ok()) return recovered.status();
  manifest = std::move(recovered->manifest);
  state = std::move(recovered->state);
  manifest_was_read = true;
  STRIDE_TRY(apply_unsynced(recovered->unsynced));
  next_id = state.next_id;
  if (!options.read_only) STRIDE_TRY(remove_orphans());
  return open_segments();
}

// Edits that were not synced when the process ended count as far as their files are whole.
Status DatabaseImpl::apply_unsynced(const std::vector<UnsyncedEdit>& edits) {
  for (const UnsyncedEdit& unsynced : edits) {
    ManifestState after = state;
    Status s = after.apply(unsynced.edit);
    for (const SegmentRecord& record : unsynced.edit.added) {
      auto segment = open_segment(record);
      if (s.ok()) s = segment.status();
      if (s.ok()) s = (*segment)->verify();
      unsynced_files.push_back(segment_path(record.segment));
    }
    if (!s.ok()) return manifest ? manifest->cut(unsynced.offset) : Status();
    state = std::move(after);
    unsynced_edits = true;
  }
  return {};
}

// Files of commits and compactions that were cut off before their edit was written. No name is used
// again that a power loss could bring back: the unsynced edit of a new file would be taken to mean
// the old one. So what was removed earlier is made sure to be gone, and the names that are there
// count as used.
Status DatabaseImpl::remove_orphans() {
  STRIDE_TRY(fs->sync_directory(path));
  auto names = fs->list(path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!name.ends_with(".seg")) continue;
    std::string file = path + "/" + name;
    uint64_t id = std::strtoull(name.c_str(), nullptr, 10);
    if (segment_path(id) == file && id < foreign_id) next_id = std::max(next_id, id + 1);
    bool named =
        std::any_of(state.segments.begin(), state.segments.end(),
                    [&](const SegmentRecord& s) { return segment_path(s.segment) == file; });
    if (!named) Status ignored = fs->remove(file);
  }
  return {};
}

Result<std::shared_ptr<Segment>> DatabaseImpl::open_segment(const SegmentRecord& record) const {
  auto segment = Segment::open(*fs, segment_path(record.segment), record.segment);
  if (segment.ok() && (*segment)->rows() != record.rows)
    return Status::corruption(segment_path(record.segment), 0,
                              "the segment has another number of rows than the manifest says");
  return segment;
}

Status DatabaseImpl::open_segments() {
  std::vector<std::shared_ptr<Segment>> opened(state.segments.size());
  std::mutex mutex;
  Status failure;
  backend->parallel_for(opened.size(), 8, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const SegmentRecord& record = state.segments[i];
      auto segment = open_segment(record);
      if (segment.ok()) {
        opened[i] = std::move(*segment);
        continue;
      }
      std::lock_guard guard(mutex);
      failure = segment.status();
    }
  });
  STRIDE_TRY(failure);
  auto version = std::make_shared<Version>();
  version->backend = backend;
  version->residency = residency;
  for (const TableRecord& t : state.tables) version->tables.push_back(empty_table(t));
  uint64_t bytes = manifest ? manifest->bytes() : 0;
  for (size_t i = state.segments.size(); i-- > 0;) {
    const SegmentRecord& record = state.segments[i];
    auto* table = const_cast<TableVersion*>(version->find(record.table));
    table->segments.push_back(std::make_shared<IndexedSegment>(fs, opened[i], record));
    bytes += record.bytes;
  }
  size_bytes = bytes;
  publish(std::move(version));
  return {};
}

void DatabaseImpl::publish(std::shared_ptr<const Version> version) {
  std::lock_guard guard(version_mutex_);
  version_.swap(version);
  // The old one is released after the lock: it may be the last pin of files.
}

Status DatabaseImpl::writable() {
  std::lock_guard guard(commit_mutex);
  return writable_locked();
}

Status DatabaseImpl::writable_locked() {
  if (closed) return Status(StatusCode::closed, "the database has been closed").with_file(path);
  if (options.read_only)
    return Status(StatusCode::read_only, "the database was opened read-only")
        .with_file(path)
        .with_remedy("open it without read_only to write");
  Status ignored = settle_writes(/*wait=*/false);  // poison has it
  return poison;
}

Status DatabaseImpl::poison_with(Status s) {
  poison = Status(StatusCode::poisoned, "an earlier write or sync failed (" + s.message() +
                                            "): nothing more is written through this handle")
               .with_file(s.file())
               .with_remedy("check the disk, then open the database again; reads go on meanwhile");
  return s;
}

Result<Table> DatabaseImpl::create_table(const std::string& name, const TableOptions& table) {
  STRIDE_TRY(check_table_options(name, table));
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  for (const TableRecord& t : state.tables)
    if (t.name == name)
      return Status(StatusCode::already_exists, "there is a table '" + name + "' already")
          .with_file(path);
  VersionEdit edit;
  uint32_t width = table.address_bits ? prefix_key_width(table.address_bits) : table.key_width;
  edit.created.push_back({static_cast<uint32_t>(next_id++), name, width, table.address_bits,
                          table.share_equal_values, table.numbers,
                          table.overflow == Overflow::wrap});
  uint32_t id = edit.created[0].id;
  STRIDE_TRY(apply(std::move(edit), {}, options.durability));
  return handle(current()->find(id)->table);
}

Status DatabaseImpl::drop_table(const std::string& name) {
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  for (const TableRecord& t : state.tables) {
    if (t.name != name) continue;
    VersionEdit edit;
    edit.dropped.push_back(t.id);
    return apply(std::move(edit), {}, Durability::sync);
  }
  return Status(StatusCode::not_found, "no table '" + name + "'").with_file(path);
}

Status DatabaseImpl::apply(VersionEdit edit, const std::vector<std::shared_ptr<Segment>>& built,
                           Durability durability) {
  edit.next_id = next_id;
  ManifestState after = state;
  Status s = after.apply(edit);
  if (s.ok()) s = log(edit, !built.empty(), durability);
  if (!s.ok()) {
    // After a failed sync nobody knows whether the edit is in the log: its files stay.
    if (poison.ok()) discard(built);
    return s;
  }
  state = std::move(after);
  publish_edit(edit, built);
  return {};
}

// A synced edit makes every edit before it durable too, and so must their files be. A flushed one
// makes them survive the process.
Status DatabaseImpl::log(const VersionEdit& edit, bool new_files, Durability durability) {
  bool sync = durability == Durability::sync;
  if (durability != Durability::none) STRIDE_TRY(settle_writes(/*wait=*/true));
  if (sync) STRIDE_TRY(sync_files());
  if (sync && new_files)
    if (Status s = fs->sync_directory(path); !s.ok()) return poison_with(std::move(s));
  Status s = manifest->append(edit, sync);
  if (s.ok()) unsynced_edits = !sync;
  if (s.code() == StatusCode::poisoned || (sync && s.code() == StatusCode::io_error))
    return poison_with(std::move(s));
  return s;
}

Status DatabaseImpl::settle_writes(bool wait) {
  Status failure;
  std::erase_if(being_written, [&](const std::shared_ptr<Segment>& segment) {
    if (!wait && segment->being_written()) return false;
    Status s = segment->finish_write();
    if (!s.ok() && failure.ok()) failure = poison_with(std::move(s));
    return true;
  });
  return failure;
}

Status DatabaseImpl::sync_files() {
  for (const std::string& name : unsynced_files) {
    auto file = fs->open(name, OpenMode::write);
    if (file.status().code() == StatusCode::not_found) continue;  // compacted or dropped since
    Status s = file.ok() ? (*file)->sync() : file.status();
    if (!s.ok()) return poison_with(std::move(s));
  }
  if (!unsynced_files.empty())
    if (Status s = fs->sync_directory(path); !s.ok()) return poison_with(std::move(s));
  unsynced_files.clear();
  return {};
}

void DatabaseImpl::discard(const std::vector<std::shared_ptr<Segment>>& built) {
  for (const auto& segment : built) {
    std::erase(unsynced_files, segment->path());
    std::erase(being_written, segment);
    Status ignored = fs->remove(segment->path());
  }
}

void DatabaseImpl::publish_edit(const VersionEdit& edit,
                                const std::vector<std::shared_ptr<Segment>>& built) {
  auto old = current();
  auto version = std::make_shared<Version>();
  version->backend = backend;
  version->residency = residency;
  uint64_t bytes = manifest->bytes();
  auto gone = [](auto& list, auto id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  for (const TableVersion& t : old->tables) {
    bool dropped = gone(edit.dropped, t.table->id);
    TableVersion kept{t.table, {}, t.matcher};
    bool changed = false;
    for (size_t i = 0; i < edit.added.size(); ++i)
      if (edit.added[i].table == t.table->id) {
        kept.segments.push_back(std::make_shared<IndexedSegment>(fs, built[i], edit.added[i]));
        changed = true;
      }
    for (const auto& s : t.segments) {
      if (dropped || gone(edit.removed, s->record().segment)) {
        s->remove_when_unused();
        changed = true;
      } else {
        kept.segments.push_back(s);
      }
    }
    for (const auto& s : kept.segments) bytes += s->record().bytes;
    if (dropped) continue;
    if (t.matcher && changed) kept.matcher = t.matcher->follow(*residency, kept);
    version->tables.push_back(std::move(kept));
  }
  for (const TableRecord& t : edit.created) version->tables.push_back(empty_table(t));
  size_bytes = bytes;
  publish(std::move(version));
}

namespace {

// The first row of each part, of which none has many more than `most` bytes.
template <class Rows>
std::vector<uint64_t> cut_rows(const Rows& rows, uint64_t most) {
  std::vector<uint64_t> firsts{0};
  uint64_t bytes = 0;
  RowBytes added(rows);
  for (uint64_t i = 0; i < rows.size(); ++i) {
    uint64_t of_row = added.add(rows, i);
    if (bytes > 0 && bytes + of_row > most) {
      firsts.push_back(i);
      bytes = 0;
      added.begin();
      of_row = added.add(rows, i);
    }
    bytes += of_row;
  }
  return firsts;
}

}  // namespace

template <class Rows>
Status DatabaseImpl::build(const Rows& rows, uint32_t table, Durability durability,
                           VersionEdit* edit, std::vector<std::shared_ptr<Segment>>* built) {
  uint64_t resident = 0, limit = options.memory_limit_bytes;
  for (const TableVersion& t : current()->tables)
    for (const auto& s : t.segments) resident += s->segment().resident_bytes();
  for (const auto& s : *built) resident += s->resident_bytes();
  uint64_t budget = limit > resident ? limit - resident : 0;
  // While it is built a segment is in memory as a whole.
  uint64_t part = std::max(limit / 8, least_part_bytes);
  if (rows.most_bytes() <= std::max(budget, part))
    return build_one(RowRange<Rows>{rows, 0, rows.size()}, table, durability, budget, edit, built);
  std::vector<uint64_t> firsts = cut_rows(rows, part);
  for (size_t i = 0; i < firsts.size(); ++i) {
    uint64_t end = i + 1 < firsts.size() ? firsts[i + 1] : rows.size();
    STRIDE_TRY(build_one(RowRange<Rows>{rows, firsts[i], end - firsts[i]}, table, durability,
                         /*resident_budget=*/0, edit, built));
  }
  return {};
}

template <class Rows>
Status DatabaseImpl::build_one(const RowRange<Rows>& rows, uint32_t table, Durability durability,
                               uint64_t resident_budget, VersionEdit* edit,
                               std::vector<std::shared_ptr<Segment>>* built) {
  SegmentBuildOptions build;
  build.fs = fs;
  build.residency = residency.get();
  build.id = next_id++;
  build.path = segment_path(build.id);
  build.tree = &options.tree;
  build.share_equal_values = current()->find(table)->table->share_equal_values;
  build.resident_budget_bytes = resident_budget;
  bool sync = durability == Durability::sync;
  build.io = io;
  build.wait = wait_for(durability);
  auto segment = build_segment(rows, build);
  if (!segment.ok()) {
    Status s = segment.status();
    return sync && s.code() == StatusCode::io_error ? poison_with(std::move(s)) : s;
  }
  if (!sync) {
    unsynced_files.push_back(build.path);
    being_written.push_back(*segment);
  }
  edit->added.push_back({build.id, table, 0, (*segment)->rows(), (*segment)->tombstones(),
                         (*segment)->bytes_on_disk()});
  built->push_back(std::move(*segment));
  return {};
}

template Status DatabaseImpl::build(const StagedRows&, uint32_t, Durability, VersionEdit*,
                                    std::vector<std::shared_ptr<Segment>>*);

Status DatabaseImpl::calibrate() {
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  // Those of other machines stay: a database may move back.
  BackendCosts costs = read_costs(*fs, path);
  STRIDE_TRY(residency->measure_costs(&costs));
  residency->set_costs(costs);
  return write_costs(*fs, path, costs);
}

Status DatabaseImpl::compact() {
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  auto version = current();
  for (const TableVersion& table : version->tables) STRIDE_TRY(compact_table(table));
  return {};
}

// Synced whatever options.durability is: files may go only when no log that could come back after a
// power loss names them. So is drop_table().
Status DatabaseImpl::compact_table(const TableVersion& table) {
  const SegmentList& segments = table.segments;
  bool is_compact = std::all_of(segments.begin(), segments.end(), [&](const auto& s) {
    return s->record().run == segments[0]->record().run && s->record().tombstones == 0;
  });
  if (is_compact) return {};
  MergedRows rows;
  STRIDE_TRY(merge_all(*backend, segments, &rows));
  VersionEdit edit;
  std::vector<std::shared_ptr<Segment>> built;
  for (const auto& s : segments) edit.removed.push_back(s->record().segment);
  if (rows.size() > 0) {
    Status s = build(rows, table.table->id, Durability::sync, &edit, &built);
    if (!s.ok()) {
      discard(built);
      return s;
    }
    // It takes the place of the runs that it merged.
    for (SegmentRecord& added : edit.added) added.run = segments[0]->record().run;
  }
  return apply(std::move(edit), built, Durability::sync);
}

// The commit that made it due is done whatever becomes of this; the next one tries again.
void DatabaseImpl::fold_if_due(uint32_t table) {
  auto version = current();
  const TableVersion* found = version->find(table);
  if (!found || !found->matcher) return;
  if (count_runs(found->segments) > most_prefix_runs)
    Status ignored = no_throw([&] { return compact_table(*found); });
}

Status DatabaseImpl::close() {
  std::lock_guard guard(commit_mutex);
  if (closed) return {};
  closed = true;
  // Where the handle is poisoned too: once the lock is released, others may write.
  Status s = settle_writes(/*wait=*/true);
  if (s.ok() && unsynced_edits) s = poison;
  if (manifest && poison.ok() && unsynced_edits) {
    VersionEdit nothing;
    nothing.next_id = next_id;
    s = log(nothing, false, Durability::sync);
  }
  manifest.reset();
  lock.reset();
  return s;
}

}  // namespace stride
