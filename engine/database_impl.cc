#include "engine/database_impl.h"

#include <algorithm>
#include <utility>

#include "engine/catalog/directory_claim.h"
#include "engine/catalog/next_version.h"
#include "engine/catalog/segment_check.h"
#include "engine/catalog/table_options.h"
#include "engine/device/executor.h"
#include "engine/memtable/memtable.h"
#include "engine/monitoring/state_metrics.h"
#include "engine/salvage/damaged_parts.h"
#include "engine/salvage/verification.h"
#include "engine/table_schema.h"
#include "storage/no_throw.h"
#include "storage/system_memory.h"

namespace stride {
namespace {

// A table has rows in so many blocks of 1 MiB at most, four times over.
constexpr uint64_t max_memtable_bytes = uint64_t{16} << 30;
// However little memory there may be.
constexpr uint64_t min_memtable_bytes = 1 << 20;

EventTargets event_targets(const std::string& path, const Options& options) {
  EventTargets targets{options.event_listener, options.logger};
  // Two handles are not to write one file, nor is a test's file system to see what it did not ask
  // for.
  if (!options.logger && options.log_file && !options.read_only && !options.file_system)
    targets.file = std::make_unique<LogFile>(FileSystem::posix(), path);
  return targets;
}

Result<DatabaseContext> make_context(const std::string& path, const Options& options) {
  STRIDE_TRY(options.tree.check());
  DatabaseContext context;
  context.path = path;
  auto monitor = std::make_shared<Monitor>(event_targets(path, options));
  context.identity = std::make_shared<const DatabaseIdentity>(path, monitor, options.clock);
  context.options = options;
  if (!options.memory_limit_bytes) context.options.memory_limit_bytes = system_memory_bytes() / 2;
  context.options.memtable_bytes =
      std::min({options.memtable_bytes, max_memtable_bytes,
                std::max(context.options.memory_limit_bytes / 4, min_memtable_bytes)});
  context.fs = std::make_shared<ClaimedFiles>(
      options.file_system ? *options.file_system : FileSystem::posix(), path);
  auto executor = Executor::make(options, std::move(monitor));
  if (!executor.ok()) return executor.status();
  context.executor = std::move(*executor);
  context.backend = context.executor->host();
  context.io = std::make_shared<IoThreads>();
  return context;
}

}  // namespace

DatabaseImpl::DatabaseImpl(DatabaseContext context)
    : context_(std::move(context)),
      poison_(context_.identity->monitor.get()),
      unsynced_(*context_.fs, context_.path, poison_),
      versions_(context_, unsynced_, poison_),
      builder_(context_, versions_, poison_),
      compactor_(context_, versions_, unsynced_, builder_),
      small_commits_(context_, versions_, unsynced_, poison_,
                     [this] { return maintenance_.flush_failure(); }),
      flush_(context_, versions_, unsynced_, builder_),
      committer_(context_, versions_, unsynced_, builder_, small_commits_,
                 [this](uint32_t table) { compactor_.compact_if_due(table); }),
      maintenance_(context_, versions_, unsynced_, small_commits_, flush_, compactor_,
                   commit_mutex_) {}

Result<std::shared_ptr<DatabaseImpl>> DatabaseImpl::open(const std::string& path,
                                                         const Options& options, bool takes_lease) {
  auto context = make_context(path, options);
  if (!context.ok()) return context.status();
  context->takes_lease = takes_lease && options.read_only;
  auto impl = make_shared_here<DatabaseImpl>(std::move(*context));
  FileSystem& fs = *impl->context_.fs;
  DirectoryClaim claim(fs, path);
  if (!options.read_only) STRIDE_TRY(claim.acquire(options.create_if_missing));
  STRIDE_TRY(impl->versions_.open());
  impl->context_.executor->set_costs(read_costs(fs, path));
  impl->context_.fs->claim(claim.keep());
  impl->tell_of_opening();
  if (!options.read_only) {
    if (impl->context_.identity->clock.is_started()) impl->maintenance_.look_behind();
    impl->maintenance_.look_at_backlog();
  }
  return impl;
}

void DatabaseImpl::tell_of_opening() {
  const auto version = current();
  uint64_t rows = 0;
  auto count = [&](const Memtable& memtable) {
    for (const auto& tail : memtable.tails()) rows += tail->rows();
  };
  if (version->memtable) count(*version->memtable);
  for (const SealedMemtable& sealed : version->sealed) count(*sealed.rows);
  context_.identity->monitor->events().push(
      {.kind = EventKind::opened, .rows = rows, .bytes_in = version->file_bytes});
}

Metrics DatabaseImpl::metrics() const {
  if (!check_process().ok()) return {};
  Monitor& monitor = *context_.identity->monitor;
  Metrics metrics{monitor.operations().metrics(), monitor.work_metrics(),
                  state_metrics(*current())};
  const WorkMetrics& work = metrics.work;
  StateMetrics& state = metrics.state;
  state.log_bytes += versions_.log_bytes();
  state.size_bytes = versions_.size_bytes();
  state.memtable_bytes += small_commits_.memory_bytes();
  state.debt_bytes = maintenance_.debt_bytes();
  state.poisoned = poison_.is_set();
  state.read_only = context_.options.read_only;
  if (const uint64_t committed = metrics.operations.committed_bytes; committed > 0)
    state.write_amplification = static_cast<double>(work.log_bytes + work.bulk_bytes +
                                                    work.flush_bytes + work.compaction_bytes) /
                                static_cast<double>(committed);
  return metrics;
}

Status DatabaseImpl::writable() {
  STRIDE_TRY(check_process());
  std::lock_guard guard(commit_mutex_);
  return versions_.writable();
}

Result<std::shared_ptr<const TableRecord>> DatabaseImpl::new_table(const std::string& name,
                                                                   const TableOptions& options,
                                                                   const Staging* staging) {
  STRIDE_TRY(check_process());
  STRIDE_TRY(check_table_options(name, options));
  const auto version = current();
  const TableVersion* there = version->find_name(name);
  if (there && !(staging && staging->renames(there->table->id)))
    return Status(StatusCode::already_exists, "there is a table '" + name + "' already")
        .with_file(context_.path);
  if (versions_.next_id() > UINT32_MAX)
    return Status(StatusCode::resource_exhausted, "the numbers of tables are used up")
        .with_file(context_.path)
        .with_remedy("copy the tables into a new database");
  return make_table_record(static_cast<uint32_t>(versions_.new_id()), name, options);
}

Result<Table> DatabaseImpl::create_table(const std::string& name, const TableOptions& options) {
  STRIDE_TRY(check_process());
  std::lock_guard guard(commit_mutex_);
  STRIDE_TRY(versions_.writable());
  auto record = new_table(name, options, /*staging=*/nullptr);
  if (!record.ok()) return record.status();
  PendingEdit pending(unsynced_);
  pending.edit.created.push_back(**record);
  STRIDE_TRY(versions_.apply(*with_tables(current(), {&*record, 1}), &pending,
                             context_.options.durability));
  return handle(std::move(*record));
}

Result<Table> DatabaseImpl::open_table(const std::string& name) const {
  STRIDE_TRY(check_process());
  uint32_t commit = 0;
  const auto version = current(&commit);
  return table_named(version, commit, name);
}

// Synced whatever the options say, as a compaction is.
Status DatabaseImpl::drop_table(const std::string& name) {
  STRIDE_TRY(check_process());
  std::scoped_lock guard(large_mutex_, commit_mutex_);
  STRIDE_TRY(versions_.writable());
  auto version = current();
  const TableVersion* found = version->find_name(name);
  if (!found)
    return Status(StatusCode::not_found, "no table '" + name + "'").with_file(context_.path);
  PendingEdit pending(unsynced_);
  versions_.new_id();  // of no use but that frames of logs tell by it which edits they follow
  pending.edit.dropped.push_back(found->table->id);
  pending.obsolete.assign(found->segments.begin(), found->segments.end());
  return versions_.apply(*version, &pending, Durability::sync);
}

Status DatabaseImpl::commit(CommitRequest* request) {
  if (is_large(*request))
    return large_commits_.commit(request, [this](const auto& group) { carry_out_large(group); });
  if (request->open) large_commits_.leave(std::exchange(request->open, nullptr));
  small_commits_.prepare(request);
  return commits_.commit(request, [this](const auto& group) { carry_out(group); });
}

void DatabaseImpl::carry_out(const std::vector<CommitRequest*>& group) {
  maintenance_.before_commits();
  Committer::Made made;
  {
    std::lock_guard guard(commit_mutex_);
    made = committer_.commit(group);
  }
  maintenance_.after_commits();
  if (made.runs) maintenance_.after_bulk_commits();
  if (made.erased_rows) maintenance_.look_behind();
}

void DatabaseImpl::carry_out_large(const std::vector<CommitRequest*>& group) {
  std::lock_guard large(large_mutex_);
  maintenance_.before_bulk_commits(nullptr);
  make_runs(group);
  maintenance_.after_bulk_commits();
}

Status DatabaseImpl::commit_watched(CommitRequest* request, WorkWatch* watch) {
  if (!large_mutex_.lock_unless_stopped(*watch)) return WorkWatch::cancelled();
  std::lock_guard large(large_mutex_, std::adopt_lock);
  maintenance_.before_bulk_commits(watch);
  const Status failure = no_throw([&] {
    WorkWatch::Scope scope(watch);
    STRIDE_TRY(WorkWatch::check());
    make_runs({request});
    return Status();
  });
  maintenance_.after_bulk_commits();
  return request->answered ? std::move(request->status) : failure;
}

void DatabaseImpl::make_runs(const std::vector<CommitRequest*>& group) {
  const bool rows_alone = std::all_of(group.begin(), group.end(), [](const CommitRequest* r) {
    return r->staging->has_rows_alone();
  });
  if (rows_alone) {
    committer_.commit_rows_alone(group, commit_mutex_);
  } else {
    std::lock_guard guard(commit_mutex_);
    committer_.commit(group);
  }
}

Status DatabaseImpl::refresh() {
  STRIDE_TRY(check_process());
  std::lock_guard guard(commit_mutex_);
  return versions_.refresh();
}

Status DatabaseImpl::sync() {
  STRIDE_TRY(check_process());
  std::lock_guard guard(commit_mutex_);
  STRIDE_TRY(versions_.writable());
  return versions_.sync();
}

Status DatabaseImpl::compact() {
  STRIDE_TRY(check_process());
  return maintenance_.compact_all();
}

Status DatabaseImpl::calibrate() {
  STRIDE_TRY(check_process());
  std::lock_guard guard(commit_mutex_);
  STRIDE_TRY(versions_.writable());
  // Those of other machines stay: a database may move back.
  BackendCosts costs = read_costs(*context_.fs, context_.path);
  STRIDE_TRY(context_.executor->measure_costs(&costs));
  context_.executor->set_costs(costs);
  return write_costs(*context_.fs, context_.path, costs);
}

Status DatabaseImpl::verify() {
  STRIDE_TRY(check_process());
  auto version = current();
  for (size_t i = 0; i < version->tables.size(); ++i) {
    const TableVersion& t = *version->tables[i];
    STRIDE_TRY(verify_table(*context_.fs, *version->backend, *t.table, t.segments));
  }
  return verify_logs(nullptr);
}

Status DatabaseImpl::verify(VerifyReport* report) {
  STRIDE_TRY(check_process());
  *report = {};
  auto version = current();
  for (size_t i = 0; i < version->tables.size(); ++i) {
    const TableVersion& t = *version->tables[i];
    STRIDE_TRY(report_table(*context_.fs, *version->backend, *t.table, t.segments, report));
  }
  STRIDE_TRY(verify_logs(report));
  return first_of(report->damage);
}

// While they are read, segments may take the place of the first ones. What a read-only handle has
// read of logs is in memory, and a writer goes on.
Status DatabaseImpl::verify_logs(VerifyReport* report) {
  if (context_.options.read_only) return {};
  for (;;) {
    std::vector<LogRecord> logs;
    uint64_t end;
    {
      std::lock_guard guard(commit_mutex_);
      // Nobody knows what was lost, or what another process has written since.
      if (poison_.is_set() || versions_.is_closed()) return {};
      STRIDE_TRY(unsynced_.finish_writes(/*wait=*/true, /*logs=*/true));
      logs = versions_.logs();
      std::erase_if(logs, [&](const LogRecord& log) { return versions_.has_lost(log); });
      end = small_commits_.log_end();
    }
    Status s = ::stride::verify_logs(context_, logs, end);
    if (s.ok()) return s;
    std::lock_guard guard(commit_mutex_);
    if (std::all_of(logs.begin(), logs.end(), [&](auto& log) { return versions_.has(log); }))
      return report && is_damage(s) ? report_logs(context_, logs, s, report) : s;
  }
}

// The files are synced ahead without the lock: commits wait for the rest alone.
Result<FrozenDatabase> DatabaseImpl::freeze() {
  STRIDE_TRY(check_process());
  const bool writes = !context_.options.read_only;
  if (writes) {
    STRIDE_TRY(writable());
    STRIDE_TRY(unsynced_.sync_ahead());
  }
  std::lock_guard guard(commit_mutex_);
  Status s = versions_.writable();
  if (!s.ok() && s.code() != StatusCode::read_only) return s;
  if (writes) STRIDE_TRY(versions_.sync());
  FrozenDatabase frozen{.fs = context_.fs.get(), .path = context_.path};
  frozen.version = versions_.current(&frozen.commit);
  frozen.next_id = versions_.next_id();
  frozen.identity = versions_.identity();
  if (!writes) frozen.unsynced = unsynced_.found();
  return frozen;
}

Status DatabaseImpl::close() {
  STRIDE_TRY(check_process());
  maintenance_.stop();
  Status s;
  {
    std::scoped_lock guard(large_mutex_, commit_mutex_);
    if (versions_.is_closed()) return {};
    s = versions_.close();
  }
  // Who opens the database next writes to the same LOG.
  context_.identity->monitor->end(s);
  context_.fs->release();
  return s;
}

}  // namespace stride
