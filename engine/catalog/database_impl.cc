#include "engine/catalog/database_impl.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "engine/build/segment_builder.h"
#include "engine/catalog/directory_claim.h"
#include "engine/catalog/segment_check.h"
#include "engine/device/residency.h"
#include "engine/merge/merger.h"
#include "engine/prefix/matcher.h"
#include "storage/manifest_format.h"
#include "storage/manifest_replay.h"
#include "storage/no_throw.h"

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

}  // namespace

TableVersion empty_table(std::shared_ptr<const TableRecord> record) {
  const bool prefixes = record->address_bits > 0;
  return {std::move(record), {}, prefixes ? std::make_shared<MatcherSlot>() : nullptr};
}

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
  return path + "/" + segment_name(id);
}

Result<std::shared_ptr<DatabaseImpl>> DatabaseImpl::open(const std::string& path,
                                                         const Options& options) {
  STRIDE_TRY(options.tree.check());
  auto impl = make_shared_here<DatabaseImpl>();
  impl->path = path;
  impl->identity = std::make_shared<const DatabaseIdentity>(DatabaseIdentity{path, {}});
  impl->left_in_parent_ = impl->make_version();
  impl->options = options;
  impl->fs = options.file_system ? options.file_system : &FileSystem::posix();
  if (!impl->options.memory_limit_bytes) impl->options.memory_limit_bytes = half_of_memory();
  auto residency = Residency::make(options);
  if (!residency.ok()) return residency.status();
  impl->residency = std::move(*residency);
  impl->backend = impl->residency->host();
  DirectoryClaim claim(*impl->fs, path);
  if (!options.read_only) STRIDE_TRY(claim.take(options.create_if_missing));
  // A read-only handle may meet a writer that compacts: what the manifest named a moment ago is
  // gone, and reading the manifest again finds what took its place. What stays missing is lost.
  Status s = impl->recover();
  std::vector<uint64_t> before;
  for (int again = 0; options.read_only && again < 10 && s.ok(); ++again) {
    if (impl->missing_segments.empty() || impl->missing_segments == before) break;
    before = impl->missing_segments;
    s = impl->recover();
  }
  if (!s.ok()) return s;
  impl->residency->set_costs(read_costs(*impl->fs, path));
  impl->lock = claim.keep();
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
  STRIDE_TRY(apply_unsynced(recovered->unsynced));
  next_id = state.next_id;
  STRIDE_TRY(open_segments());
  if (!options.read_only) STRIDE_TRY(remove_orphans());
  state = {};
  return {};
}

// The segments of an edit that comes next.
Status DatabaseImpl::check_whole(const VersionEdit& edit, const ManifestReplay& before) const {
  for (const SegmentRecord& record : edit.added) {
    auto created = std::find_if(edit.created.begin(), edit.created.end(),
                                [&](const TableRecord& t) { return t.id == record.table; });
    const TableRecord* table =
        created == edit.created.end() ? before.find_table(record.table) : &*created;
    if (!table) continue;  // the edit does not fit
    auto segment = open_segment(record, *table);
    STRIDE_TRY(segment.ok() ? (*segment)->verify() : segment.status());
  }
  return {};
}

namespace {

// Whether a power loss can have taken or torn a file. What else keeps it from being read, such as a
// lack of memory or of descriptors, is no reason to give up what it holds.
bool may_be_lost(const Status& s) {
  return s.code() == StatusCode::corruption || s.code() == StatusCode::not_found;
}

}  // namespace

// Edits that were not synced when the process ended count as far as their files are whole.
Status DatabaseImpl::apply_unsynced(const std::vector<UnsyncedEdit>& edits) {
  if (edits.empty()) return {};
  ManifestReplay replay(state);
  Status s;
  for (size_t i = 0; s.ok() && i < edits.size(); ++i) {
    const VersionEdit& edit = edits[i].edit;
    for (const SegmentRecord& record : edit.added)
      unsynced_files.push_back(segment_path(record.segment));
    s = check_whole(edit, replay);
    if (s.ok()) s = replay.apply(edit);
    if (s.ok()) unsynced_edits = true;
    if (!s.ok() && !may_be_lost(s)) return s;
    if (!s.ok() && manifest) STRIDE_TRY(manifest->cut(edits[i].offset));
  }
  state = replay.state();
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
  std::unordered_set<uint64_t> named;
  for (const SegmentRecord& s : state.segments) named.insert(s.segment);
  for (const std::string& name : *names) {
    auto id = segment_number(name);
    if (!id || *id >= foreign_id) continue;
    next_id = std::max(next_id.load(), *id + 1);
    // Where a segment is missing, this may be the manifest of another database, or an old one.
    if (!named.contains(*id) && missing_segments.empty())
      Status ignored = fs->remove(path + "/" + name);
  }
  return {};
}

Result<std::shared_ptr<Segment>> DatabaseImpl::open_segment(const SegmentRecord& record,
                                                            const TableRecord& table) const {
  auto segment = Segment::open(*fs, segment_path(record.segment), record.segment);
  if (!segment.ok()) return segment;
  if (Status s = check_record(**segment, record, table); !s.ok()) return s;
  return segment;
}

namespace {

// Whether only the one segment is concerned: what else is in the database can be read.
bool is_damage(const Status& s) {
  return s.code() == StatusCode::corruption || s.code() == StatusCode::io_error ||
         s.code() == StatusCode::unsupported_version;
}

// What reads say of a segment that cannot be opened.
Status as_damage(const Status& s, const std::string& file) {
  if (s.code() == StatusCode::not_found)
    return Status::corruption(file, 0, "the segment's file is missing")
        .with_remedy("restore the file from a backup");
  // A directory, say.
  if (s.code() == StatusCode::invalid_argument)
    return Status::corruption(file, 0, s.message()).with_remedy("restore the file from a backup");
  return s;
}

}  // namespace

Status DatabaseImpl::open_segments() {
  auto version = make_version();
  for (const TableRecord& t : state.tables)
    version->tables.push_back(empty_table(std::make_shared<const TableRecord>(t)));
  std::vector<std::shared_ptr<Segment>> opened(state.segments.size());
  std::mutex mutex;
  Status failure;
  missing_segments.clear();
  backend->parallel_for(opened.size(), 8, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const SegmentRecord& record = state.segments[i];
      auto segment = open_segment(record, *version->find(record.table)->table);
      if (segment.ok()) {
        opened[i] = std::move(*segment);
        continue;
      }
      std::lock_guard guard(mutex);
      if (segment.status().code() == StatusCode::not_found)
        missing_segments.push_back(record.segment);
      std::string file = segment_path(record.segment);
      Status s = as_damage(segment.status(), file);
      if (!is_damage(s)) failure = s;
      opened[i] = Segment::unreadable(file, record.segment, std::move(s));
    }
  });
  STRIDE_TRY(failure);
  std::sort(missing_segments.begin(), missing_segments.end());
  std::map<uint32_t, std::vector<std::shared_ptr<IndexedSegment>>> segments;  // by table
  for (size_t i = state.segments.size(); i-- > 0;) {
    const SegmentRecord& record = state.segments[i];
    segments[record.table].push_back(std::make_shared<IndexedSegment>(fs, opened[i], record));
  }
  uint64_t bytes = manifest ? manifest->bytes() : 0;
  for (TableVersion& t : version->tables) {
    t.segments = SegmentList(segments[t.table->id]);
    bytes += t.segments.file_bytes();
  }
  size_bytes = bytes;
  publish(std::move(version));
  return {};
}

Status DatabaseImpl::writable() {
  STRIDE_TRY(identity->check_process());
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

Result<std::shared_ptr<const TableRecord>> DatabaseImpl::new_table(const std::string& name,
                                                                   const TableOptions& table) {
  STRIDE_TRY(identity->check_process());
  STRIDE_TRY(check_table_options(name, table));
  auto version = current();
  for (const TableVersion& t : version->tables)
    if (t.table->name == name)
      return Status(StatusCode::already_exists, "there is a table '" + name + "' already")
          .with_file(path);
  if (next_id > UINT32_MAX)
    return Status(StatusCode::resource_exhausted, "the numbers of tables are used up")
        .with_file(path)
        .with_remedy("copy the tables into a new database");
  auto record = std::make_shared<TableRecord>();
  record->name = name;
  record->key_width =
      table.address_bits ? prefix_key_width(table.address_bits) : table.key_width;
  record->address_bits = table.address_bits;
  record->share_equal_values = table.share_equal_values;
  record->numbers = table.numbers;
  record->sums_wrap = table.overflow == Overflow::wrap;
  record->id = static_cast<uint32_t>(next_id++);
  return std::shared_ptr<const TableRecord>(std::move(record));
}

Result<Table> DatabaseImpl::create_table(const std::string& name, const TableOptions& table) {
  STRIDE_TRY(identity->check_process());
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  auto record = new_table(name, table);
  if (!record.ok()) return record.status();
  PendingEdit pending(*this);
  pending.edit.created.push_back(**record);
  STRIDE_TRY(apply(*current_with({*record}), &pending, options.durability));
  return handle(std::move(*record));
}

Result<Table> DatabaseImpl::open_table(const std::string& name) const {
  STRIDE_TRY(identity->check_process());
  auto version = current();
  for (const TableVersion& t : version->tables)
    if (t.table->name == name) return handle(t.table);
  return Status(StatusCode::not_found, "no table '" + name + "'")
      .with_file(path)
      .with_remedy("create it, or list the tables there are");
}

Status DatabaseImpl::drop_table(const std::string& name) {
  STRIDE_TRY(identity->check_process());
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  auto version = current();
  for (const TableVersion& t : version->tables) {
    if (t.table->name != name) continue;
    PendingEdit pending(*this);
    pending.edit.dropped.push_back(t.table->id);
    return apply(*version, &pending, Durability::sync);
  }
  return Status(StatusCode::not_found, "no table '" + name + "'").with_file(path);
}

template <class Rows>
Status DatabaseImpl::build(const Rows& rows, const TableRecord& table, Durability durability,
                           PendingEdit* pending) {
  uint64_t resident = 0, limit = options.memory_limit_bytes;
  auto version = current();
  for (const TableVersion& t : version->tables) resident += t.segments.resident_bytes();
  for (const auto& s : pending->segments) resident += s->resident_bytes();
  uint64_t budget = limit > resident ? limit - resident : 0;
  // While it is built a segment is in memory as a whole.
  uint64_t part = std::max(limit / 8, least_part_bytes);
  if (rows.most_bytes() <= std::max(budget, part) && rows.size() <= max_index_keys)
    return build_one(RowRange<Rows>{rows, 0, rows.size()}, table, durability, budget, pending);
  std::vector<uint64_t> firsts = cut_rows(rows, part, max_index_keys);
  for (size_t i = 0; i < firsts.size(); ++i) {
    uint64_t end = i + 1 < firsts.size() ? firsts[i + 1] : rows.size();
    STRIDE_TRY(build_one(RowRange<Rows>{rows, firsts[i], end - firsts[i]}, table, durability,
                         /*resident_budget=*/0, pending));
  }
  return {};
}

namespace {

// Adding one more does not throw.
template <class T>
void reserve_one_more(std::vector<T>* list) {
  if (list->size() == list->capacity()) list->reserve(2 * list->size() + 4);
}

}  // namespace

template <class Rows>
Status DatabaseImpl::build_one(const RowRange<Rows>& rows, const TableRecord& table,
                               Durability durability, uint64_t resident_budget,
                               PendingEdit* pending) {
  SegmentBuildOptions build;
  build.fs = fs;
  build.residency = residency.get();
  build.id = next_id++;
  build.path = segment_path(build.id);
  build.tree = &options.tree;
  build.share_equal_values = table.share_equal_values;
  build.resident_budget_bytes = resident_budget;
  bool sync = durability == Durability::sync;
  build.io = io;
  build.wait = wait_for(durability);
  reserve_one_more(&pending->segments);
  reserve_one_more(&pending->edit.added);
  reserve_one_more(&unsynced_files);
  reserve_one_more(&being_written);
  auto segment = build_segment(rows, build);
  if (!segment.ok()) {
    Status s = segment.status();
    return sync && s.code() == StatusCode::io_error ? poison_with(std::move(s)) : s;
  }
  if (!sync) {
    unsynced_files.push_back(std::move(build.path));
    being_written.push_back(*segment);
  }
  pending->edit.added.push_back({build.id, table.id, 0, (*segment)->rows(),
                                 (*segment)->tombstones(), (*segment)->bytes_on_disk()});
  pending->segments.push_back(std::move(*segment));
  return {};
}

template Status DatabaseImpl::build(const StagedRows&, const TableRecord&, Durability,
                                    PendingEdit*);

Status DatabaseImpl::calibrate() {
  STRIDE_TRY(identity->check_process());
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  // Those of other machines stay: a database may move back.
  BackendCosts costs = read_costs(*fs, path);
  STRIDE_TRY(residency->measure_costs(&costs));
  residency->set_costs(costs);
  return write_costs(*fs, path, costs);
}

Status DatabaseImpl::compact() {
  STRIDE_TRY(identity->check_process());
  std::lock_guard guard(commit_mutex);
  STRIDE_TRY(writable_locked());
  auto version = current();
  Status damage;  // it is no reason not to compact the other tables
  for (const TableVersion& table : version->tables) {
    Status s = compact_table(table);
    if (!s.ok() && (!is_damage(s) || !poison.ok())) return s;
    if (damage.ok()) damage = std::move(s);
  }
  return damage;
}

// Synced whatever options.durability is: files may go only when no log that could come back after a
// power loss names them. So is drop_table().
Status DatabaseImpl::compact_table(const TableVersion& table) {
  const SegmentList& segments = table.segments;
  for (const auto& s : segments) STRIDE_TRY(s->open_failure());
  bool is_compact = std::all_of(segments.begin(), segments.end(), [&](const auto& s) {
    return s->record().run == segments[0]->record().run && s->record().tombstones == 0;
  });
  if (is_compact) return {};
  // What another process wrote is looked at before it is written again.
  for (const auto& s : segments)
    if (!s->segment().was_written_here()) STRIDE_TRY(check_rows(*backend, *s, *table.table));
  MergedRows rows;
  STRIDE_TRY(merge_all(*backend, segments, &rows));
  PendingEdit pending(*this);
  for (const auto& s : segments) pending.edit.removed.push_back(s->record().segment);
  if (rows.size() > 0) STRIDE_TRY(build(rows, *table.table, Durability::sync, &pending));
  // It takes the place of the runs that it merged.
  for (SegmentRecord& added : pending.edit.added) added.run = segments[0]->record().run;
  return apply(*current(), &pending, Durability::sync);
}

// The commit that made it due is done whatever becomes of this; the next one tries again.
void DatabaseImpl::fold_if_due(uint32_t table) noexcept {
  auto version = current();
  const TableVersion* found = version->find(table);
  if (!found || !found->matcher) return;
  if (count_runs(found->segments) > most_prefix_runs)
    Status ignored = no_throw([&] { return compact_table(*found); });
}

Status DatabaseImpl::close() {
  STRIDE_TRY(identity->check_process());
  std::lock_guard guard(commit_mutex);
  if (closed) return {};
  closed = true;
  // Where the handle is poisoned too: once the lock is released, others may write.
  Status s = settle_writes(/*wait=*/true);
  if (s.ok() && unsynced_edits) s = poison;
  if (manifest && poison.ok()) s = no_throw([&] { return sync_locked(); });
  manifest.reset();
  lock.reset();
  return s;
}

}  // namespace stride
