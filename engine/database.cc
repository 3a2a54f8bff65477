#include "engine/database.h"

#include <algorithm>
#include <new>

#include "engine/backup/checkpoint.h"
#include "engine/backup/make_backup.h"
#include "engine/catalog/table_options.h"
#include "engine/database_impl.h"
#include "engine/device/executor.h"
#include "engine/memtable/memtable.h"
#include "engine/monitoring/state_metrics.h"
#include "engine/read_write_state.h"
#include "engine/shared_database.h"
#include "engine/table_schema.h"
#include "engine/transaction_state.h"
#include "gpu/plan/tree_planner.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {

uint32_t Table::id() const { return record_ ? record_->id : 0; }
uint32_t Table::key_width() const { return record_ ? record_->key_width : 0; }
uint32_t Table::address_bits() const { return record_ ? record_->address_bits : 0; }
bool Table::share_equal_values() const { return record_ && record_->share_equal_values; }
NumberType Table::numbers() const { return record_ ? record_->numbers : NumberType::none; }
Overflow Table::overflow() const {
  return record_ && record_->sums_wrap ? Overflow::wrap : Overflow::error;
}
const Schema& Table::schema() const {
  static const Schema none;
  return schema_ ? *schema_ : none;
}
std::string Table::expiry_column() const {
  if (!record_ || !record_->expiry) return {};
  const std::vector<Field>& values = schema().values();
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].type == record_->expiry->unit && schema().width(i) > 0 &&
        schema().offset(i) == record_->expiry->offset)
      return values[i].name;
  return {};
}
int64_t Table::time_to_live() const {
  return record_ && record_->expiry
             ? record_->expiry->in_microseconds(record_->expiry->time_to_live)
             : 0;
}
const std::string& Table::name() const {
  static const std::string none;
  return record_ ? record_->name : none;
}

Database::Database(std::shared_ptr<DatabaseImpl> impl, std::shared_ptr<SharedDatabase> shared)
    : impl_(std::move(impl)), shared_(std::move(shared)) {}

Status Database::check_open() const {
  // A database that is closed says so itself.
  if (!closed_.load(std::memory_order_acquire) || !shared_ || !shared_->is_open()) return {};
  return Status(StatusCode::closed, "this handle of the database has been closed")
      .with_file(impl_->context().path);
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, const Options& options) {
  return no_throw([&]() -> Result<std::unique_ptr<Database>> {
    std::shared_ptr<DatabaseImpl> impl;
    std::shared_ptr<SharedDatabase> shared;
    STRIDE_TRY(SharedDatabase::open(path, options, &impl, &shared));
    return std::unique_ptr<Database>(new Database(std::move(impl), std::move(shared)));
  });
}

Database::~Database() { Status ignored = close(); }

Result<Table> Database::create_table(const std::string& name, const TableOptions& options) {
  return no_throw([&]() -> Result<Table> {
    STRIDE_TRY(check_open());
    if (options.schema.empty()) return impl_->create_table(name, options);
    // The schema's table first, which another thread may make as well: then all that can be there
    // already is the table that is asked for.
    auto notes = open_or_create_table(std::string(notes_table_name));
    if (!notes.ok()) return notes.status();
    WriteTransaction transaction = begin();
    auto table = transaction.create_table(name, options);
    if (!table.ok()) return table;
    STRIDE_TRY(transaction.commit());
    return table;
  });
}

Result<Table> Database::open_table(const std::string& name) const {
  return no_throw([&] { return impl_->open_table(name); });
}

Result<Table> Database::open_or_create_table(const std::string& name, const TableOptions& options) {
  return no_throw([&]() -> Result<Table> {
    STRIDE_TRY(check_table_options(name, options));
    // Other threads may make it, and drop it again, between the two calls.
    for (;;) {
      auto table = open_table(name);
      if (table.ok()) return check_same_options(*table, options);
      if (table.status().code() != StatusCode::not_found) return table;
      table = create_table(name, options);
      if (table.ok() || table.status().code() != StatusCode::already_exists) return table;
    }
  });
}

Status Database::drop_table(const std::string& name) {
  return no_throw([&]() -> Status {
    STRIDE_TRY(check_open());
    if (name == notes_table_name)
      return Status::invalid("table '" + name + "' has what is known of the other tables")
          .with_remedy("leave it: what it has of a table goes with that");
    auto table = impl_->open_table(name);
    STRIDE_TRY(impl_->drop_table(name));
    if (!table.ok() || table->schema().empty()) return {};
    // Nobody reads the schema of an id that is gone: what fails here leaves a few bytes.
    Status ignored = no_throw([&]() -> Status {
      auto notes = impl_->open_table(std::string(notes_table_name));
      if (!notes.ok()) return notes.status();
      WriteTransaction transaction = begin();
      STRIDE_TRY(transaction.erase(*notes, schema_key(table->id())));
      return transaction.commit(Durability::flush);
    });
    return {};
  });
}

Status Database::rename_table(const std::string& name, const std::string& new_name) {
  return no_throw([&]() -> Status {
    STRIDE_TRY(check_open());
    auto table = impl_->open_table(name);
    if (!table.ok()) return table.status();
    WriteTransaction transaction = begin();
    STRIDE_TRY(transaction.rename_table(*table, new_name));
    return transaction.commit(Durability::sync);
  });
}

std::vector<TableStatistics> Database::tables() const {
  return table_statistics(*impl_->current());
}

Metrics Database::metrics() const { return impl_->metrics(); }

namespace {

// Sets what the sample of the segment's keys says of searches, if there is one.
Status expect_searches(const IndexedSegment& segment, bool on_device, Executor* executor,
                       SegmentReport* report) {
  Segment& file = segment.segment();
  Bytes sample = file.section(SectionType::key_sample);
  if (sample.empty()) return {};
  if (!file.ensure_section(SectionType::key_sample)) return file.failure();
  Result<KeyStatistics> statistics = KeyStatistics::parse(sample);
  if (!statistics.ok()) {
    return Status(statistics.status()).with_file(file.path());
  }
  std::shared_ptr<Backend> backend = on_device ? executor->device_if_known() : nullptr;
  if (!backend) backend = executor->host();
  TreeOptions built;
  built.strides = report->strides;
  built.kinds = report->kinds;
  built.leaf_capacity = report->leaf_capacity;
  PlanTarget target{.costs = backend->tree_index().access_costs()};
  TreeEstimate estimate = estimate_tree(*statistics, target, built);
  for (const LevelEstimate& level : estimate.levels) report->visits.push_back(level.visits);
  report->visits.resize(report->strides.size());
  report->leaf_keys = estimate.leaf_keys;
  report->expected_finds_per_second = 1e9 / expected_nanoseconds(estimate, *statistics, target);
  report->expected_on = backend->name();
  return {};
}

Result<std::vector<SegmentReport>> report_segments(const TableVersion& table, Executor* executor) {
  std::vector<SegmentReport> result;
  for (const auto& segment : table.segments) {
    STRIDE_TRY(segment->prepare());
    SegmentReport s;
    const SegmentRecord& record = segment->record();
    s.run = record.run;
    s.rows = record.rows;
    s.erased_rows = record.erased.rows();
    s.tombstones = record.tombstones;
    s.bytes_on_disk = record.bytes;
    s.key_bytes = segment->keys().row_bytes();
    const ValueRows& values = segment->values();
    s.value_bytes = values.column.row_bytes();
    s.fixed_keys = segment->keys().fixed;
    s.fixed_values = values.column.fixed;
    s.distinct_values = values.shared() ? values.column.size : 0;
    s.saved_bytes = segment->segment().saved_bytes();
    s.filter_bytes = segment->filter().bytes();
    s.resident_bytes = segment->segment().resident_bytes();
    if (auto copy = segment->device_slot().get()) {
      s.device_bytes = copy->index->memory_bytes();
      s.device_placement = copy->index->placement();
    }
    if (TreeView image = segment->index().tree; image.image) {
      TreeStatistics tree = tree_statistics(image);
      s.strides = std::move(tree.strides);
      s.nodes = std::move(tree.nodes);
      s.kinds = std::move(tree.kinds);
      s.prefix_bits = tree.prefix_bits;
      s.leaf_capacity = tree.leaf_capacity;
      s.tree_bytes = tree.image_bytes;
      STRIDE_TRY(expect_searches(*segment, s.device_bytes > 0, executor, &s));
    }
    result.push_back(std::move(s));
  }
  return result;
}

}  // namespace

Result<std::vector<SegmentReport>> Database::segments(const Table& table) const {
  return no_throw([&]() -> Result<std::vector<SegmentReport>> {
    auto version = impl_->current();
    auto found = version->find(table);
    if (!found.ok()) return found.status();
    return report_segments(**found, impl_->context().executor.get());
  });
}

Transaction Database::transaction() noexcept {
  try {
    if (Status s = check_open(); !s.ok()) return Transaction(std::move(s));
    return Transaction(std::make_shared<Transaction::State>(impl_));
  } catch (const std::bad_alloc&) {
    return Transaction(Status::out_of_memory());
  }
}

WriteTransaction Database::begin() noexcept {
  try {
    if (Status s = check_open(); !s.ok()) return WriteTransaction(std::move(s));
    auto state = std::make_shared<WriteTransaction::State>();
    state->database = impl_;
    return WriteTransaction(std::move(state));
  } catch (const std::bad_alloc&) {
    return WriteTransaction(Status::out_of_memory());
  }
}

Snapshot Database::snapshot() const noexcept {
  uint32_t commit = 0;
  auto version = impl_->current(&commit);
  const int64_t now = version->database->clock.now();
  return Snapshot(std::move(version), commit, now);
}

Status Database::refresh() {
  STRIDE_TRY(check_open());
  return no_throw([&] { return impl_->refresh(); });
}

Status Database::sync() {
  STRIDE_TRY(check_open());
  return no_throw([&] { return impl_->sync(); });
}

Status Database::compact() {
  const WorkWatch::Scope watched(WorkWatch::offered());
  STRIDE_TRY(check_open());
  return no_throw([&] { return impl_->compact(); });
}

Status Database::calibrate() {
  const WorkWatch::Scope watched(WorkWatch::offered());
  STRIDE_TRY(check_open());
  return no_throw([&] { return impl_->calibrate(); });
}

uint64_t Database::size_bytes() const { return impl_->size_bytes(); }

Status Database::verify() const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  return no_throw([&] { return impl_->verify(); });
}

Status Database::verify(VerifyReport* report) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  return no_throw([&] { return impl_->verify(report); });
}

namespace {

// make: make_checkpoint() or make_backup().
template <class Make>
Status copy_database(DatabaseImpl* impl, const CopyOptions& options, CopyReport* report,
                     const Make& make) {
  return no_throw([&] {
    CopyReport made;
    Status s = run_copy(options, [&](CopyCounters* counters) -> Status {
      auto frozen = impl->freeze();
      if (!frozen.ok()) return frozen.status();
      return make(*frozen, counters, &made);
    });
    if (s.ok() && report) *report = made;
    return s;
  });
}

}  // namespace

Status Database::checkpoint(const std::string& directory, const CopyOptions& options,
                            CopyReport* report) {
  STRIDE_TRY(check_open());
  return copy_database(impl_.get(), options, report,
                       [&](const FrozenDatabase& frozen, CopyCounters* counters, CopyReport* made) {
                         return make_checkpoint(frozen, directory, counters, made);
                       });
}

Status Database::backup(const std::string& directory, const CopyOptions& options,
                        CopyReport* report) {
  STRIDE_TRY(check_open());
  return copy_database(impl_.get(), options, report,
                       [&](const FrozenDatabase& frozen, CopyCounters* counters, CopyReport* made) {
                         return make_backup(frozen, directory, counters, made);
                       });
}

Status Database::close() {
  // A forked child leaves alone what other threads may have been at.
  STRIDE_TRY(impl_->check_process());
  if (closed_.exchange(true)) return {};
  return no_throw([&] { return shared_ ? shared_->close() : impl_->close(); });
}

std::string Database::backend_name() const { return impl_->context().executor->name(); }

}  // namespace stride
