#include "engine/snapshot.h"

#include "engine/catalog/version.h"
#include "engine/memtable/snapshot_state.h"
#include "engine/merge/parallel_merge.h"
#include "engine/monitoring/counted_get.h"
#include "engine/prefix/matcher.h"
#include "engine/prefixes.h"
#include "engine/read/cursor_impl.h"
#include "engine/read/device_lookup.h"
#include "engine/read/key_bounds.h"
#include "engine/read/lookup.h"
#include "engine/read/range_count.h"
#include "engine/read/scan_impl.h"
#include "engine/read/snapshot_reads.h"
#include "engine/table_schema.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

Status check_prefix_table(const Table& table, const TableVersion& version) {
  if (version.matcher) return {};
  return Status::invalid("table '" + table.name() + "' is no prefix table")
      .with_remedy("create one with address_bits in its TableOptions");
}

Status check_address(const TableRecord& table, uint64_t row, uint64_t bytes) {
  if (table.address_bits == byte_strings || bytes == address_bytes(table.address_bits)) return {};
  return Status::invalid("row " + std::to_string(row) + ": an address has " +
                         std::to_string(bytes) + " bytes, but those of table '" + table.name +
                         "' have " + std::to_string(address_bytes(table.address_bits)));
}

Status check_addresses(const TableRecord& table, const KeyColumn& addresses) {
  if (table.address_bits == byte_strings || addresses.size == 0) return {};
  if (addresses.is_fixed()) return check_address(table, 0, addresses.width);
  const uint64_t bytes = address_bytes(table.address_bits);
  for (uint64_t i = 0; i < addresses.size; ++i)
    if (uint64_t has = addresses.offsets[i + 1] - addresses.offsets[i]; has != bytes)
      return check_address(table, i, has);
  return {};
}

Status match_batch(const Version& version, const TableVersion& table, const KeyColumn& addresses,
                   MatchResult* result) {
  std::shared_ptr<const Matcher> matcher;
  STRIDE_TRY(table.matcher->get(*version.executor, table, &matcher));
  return matcher->match(*version.executor, addresses, result);
}

// found: null where nobody knows.
void count_batch(OperationCounters& counters, const KeyColumn& queries, const Bitmap* found,
                 uint64_t bytes) {
  OperationCounters::Slot& slot = counters.slot();
  slot.add(Count::batch_gets, 1);
  slot.add(Count::batch_keys, queries.size);
  if (found) slot.add(Count::batch_found, found->count());
  slot.add(Count::batch_bytes, bytes);
}

void count_matches(OperationCounters& counters, uint64_t addresses, uint64_t found) {
  OperationCounters::Slot& slot = counters.slot();
  slot.add(Count::match_addresses, addresses);
  slot.add(Count::match_found, found);
}

// The scan keeps the version, and so the counters.
Result<Scan> counted_scan(Result<Scan> scan, OperationCounters& counters) {
  if (!scan.ok()) return scan;
  counters.slot().add(Count::scans, 1);
  Scan::Impl::of(*scan).count_in(counters);
  return scan;
}

}  // namespace

Snapshot::Snapshot(std::shared_ptr<const Version> version, uint32_t commit, int64_t now) noexcept
    : version_(std::move(version)) {
  if (commit == 0 && version_->sealed.empty() && now == before_all_time) return;
  try {
    state_ = std::make_shared<const SnapshotState>(std::move(version_), commit, now);
  } catch (const std::bad_alloc&) {
    lacks_memory_ = true;
  }
}

const std::shared_ptr<const Version>& Snapshot::version() const {
  return state_ ? state_->version() : version_;
}

template <class Read>
auto Snapshot::read_table(const Table& table, const Read& read) const {
  return no_throw([&]() -> decltype(read(std::declval<const TableVersion&>())) {
    if (lacks_memory_) return Status::out_of_memory();
    auto found = state_ ? state_->table(table) : version()->find(table);
    if (!found.ok()) return found.status();
    return read(**found);
  });
}

template <class Read>
auto Snapshot::read_prefixes(const Table& table, const Read& read) const {
  return read_table(table, [&](const TableVersion& t) -> decltype(read(t)) {
    STRIDE_TRY(check_prefix_table(table, t));
    return read(t);
  });
}

OperationCounters& Snapshot::counters() const { return version()->database->monitor->operations(); }

Result<Table> Snapshot::open_table(const std::string& name) const {
  return no_throw([&]() -> Result<Table> {
    if (lacks_memory_) return Status::out_of_memory();
    return table_named(version(), state_ ? state_->commit() : 0, name);
  });
}

Result<std::optional<Bytes>> Snapshot::get(const Table& table, Bytes key) const {
  CountedGet counted(counters());
  Result<std::optional<Bytes>> result = no_throw([&]() -> Result<std::optional<Bytes>> {
    if (lacks_memory_) return Status::out_of_memory();
    if (state_) return get_newest(*state_, table, key);
    auto found = version()->find(table);
    if (!found.ok()) return found.status();
    return lookup_one((*found)->segments, key);
  });
  counted.end(result);
  return result;
}

Status Snapshot::find(const Table& table, const KeyColumn& queries, FindResult* result) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  Status s = read_table(table, [&](const TableVersion& t) {
    return lookup_references(*version()->executor, t.segments, queries, result);
  });
  count_batch(counters(), queries, s.ok() ? &result->found : nullptr, 0);
  return s;
}

Status Snapshot::get(const Table& table, const KeyColumn& queries, GetResult* result) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  Status s = read_table(table, [&](const TableVersion& t) {
    return lookup_copies(*version()->executor, t.segments, queries, result);
  });
  count_batch(counters(), queries, s.ok() ? &result->found : nullptr,
              s.ok() ? result->data.size() : 0);
  return s;
}

Status Snapshot::find_device(const Table& table, const KeyColumn& queries, Location* out,
                             void* stream) const {
  count_batch(counters(), queries, nullptr, 0);
  return read_table(table, [&](const TableVersion& t) {
    return find_on_device(*version()->executor, t.segments, queries, out, stream);
  });
}

Status Snapshot::get_device(const Table& table, const KeyColumn& queries, const DeviceValues& out,
                            void* stream) const {
  count_batch(counters(), queries, nullptr, 0);
  return read_table(table, [&](const TableVersion& t) {
    return get_on_device(*version()->executor, t.segments, queries, out, stream);
  });
}

Status Snapshot::make_keys_device(const Table& table, std::span<const CellColumn> columns,
                                  std::byte* keys, void* stream) const {
  return read_table(table, [&](const TableVersion&) {
    return make_keys_on_device(*version()->executor, table.schema(), columns, keys, stream);
  });
}

template <class Read>
Status Snapshot::read_sorted(const Table& table, uint64_t searches, const Read& read) const {
  return no_throw([&]() -> Status {
    if (lacks_memory_) return Status::out_of_memory();
    std::vector<SortedRows> sources;
    STRIDE_TRY(find_sorted_rows(*version(), state_.get(), table, searches, &sources));
    return read(sources);
  });
}

Status Snapshot::find_bounds(const Table& table, const KeyColumn& queries, KeyBound bound,
                             LowerBoundResult* result) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  counters().slot().add(Count::lower_bounds, queries.size);
  return read_sorted(table, queries.size, [&](const std::vector<SortedRows>& sources) {
    return find_key_bounds(*version()->backend, sources, queries, bound, result);
  });
}

Status Snapshot::lower_bound(const Table& table, const KeyColumn& queries,
                             LowerBoundResult* result) const {
  return find_bounds(table, queries, KeyBound::lower, result);
}

Status Snapshot::upper_bound(const Table& table, const KeyColumn& queries,
                             LowerBoundResult* result) const {
  return find_bounds(table, queries, KeyBound::upper, result);
}

Status Snapshot::previous(const Table& table, const KeyColumn& queries,
                          LowerBoundResult* result) const {
  return find_bounds(table, queries, KeyBound::previous, result);
}

Status Snapshot::match(const Table& table, const KeyColumn& addresses, MatchResult* result) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  Status s = read_prefixes(table, [&](const TableVersion& t) {
    STRIDE_TRY(check_addresses(*t.table, addresses));
    return match_batch(*version(), t, addresses, result);
  });
  count_matches(counters(), addresses.size, s.ok() ? result->found.count() : 0);
  return s;
}

Status Snapshot::match_device(const Table& table, const KeyColumn& addresses, Location* out,
                              void* stream) const {
  count_matches(counters(), addresses.size, 0);
  return read_prefixes(table, [&](const TableVersion& t) {
    std::shared_ptr<const Matcher> matcher;
    STRIDE_TRY(t.matcher->get(*version()->executor, t, &matcher));
    return matcher->match_device(*version()->executor, addresses, out, stream);
  });
}

Status Snapshot::rows_device(const Table& table, const Location* locations, uint64_t count,
                             const GatheredRows& out, void* stream) const {
  return read_table(table, [&](const TableVersion& t) {
    return rows_on_device(*version()->executor, t.segments, locations, count, out, stream);
  });
}

Result<std::optional<PrefixEntry>> Snapshot::match(const Table& table, Bytes address) const {
  using Entry = Result<std::optional<PrefixEntry>>;
  Entry entry = read_prefixes(table, [&](const TableVersion& t) -> Entry {
    STRIDE_TRY(check_address(*t.table, 0, address.size()));
    uint64_t offsets[] = {0, address.size()};
    MatchResult result;
    STRIDE_TRY(match_batch(*version(), t, Column::variable(address.data(), offsets, 1), &result));
    if (!result.found[0]) return std::optional<PrefixEntry>();
    return std::optional(PrefixEntry{result.prefix(0), result.lengths[0], result.value(0)});
  });
  count_matches(counters(), 1, entry.ok() && entry->has_value());
  return entry;
}

Result<std::vector<PrefixEntry>> Snapshot::match_all(const Table& table, Bytes address) const {
  using Entries = Result<std::vector<PrefixEntry>>;
  return read_prefixes(table, [&](const TableVersion& t) -> Entries {
    STRIDE_TRY(check_address(*t.table, 0, address.size()));
    std::vector<PrefixEntry> entries;
    STRIDE_TRY(stride::match_all(*version()->executor, t, address, &entries));
    return entries;
  });
}

// The version, which keeps what the snapshot has made of the memtable too.
std::shared_ptr<const Version> Snapshot::pin() const {
  return state_ ? std::shared_ptr<const Version>(state_, version().get()) : version_;
}

Result<Scan> Snapshot::inside(const Table& table, Bytes prefix_key) const {
  return read_prefixes(table, [&](const TableVersion& t) -> Result<Scan> {
    auto bounds = scan_inside(prefix_key, t.table->address_bits);
    if (!bounds.ok()) return bounds.status();
    return counted_scan(make_scan(pin(), t, *bounds), counters());
  });
}

Result<Scan> Snapshot::scan(const Table& table, const ScanOptions& options) const {
  if (!state_)
    return read_table(table, [&](const TableVersion& t) {
      return counted_scan(make_scan(version_, t, options), counters());
    });
  return no_throw([&] { return counted_scan(scan_newest(state_, table, options), counters()); });
}

Result<Iterator> Snapshot::iterate(const Table& table, const ScanOptions& options) const {
  auto scan = this->scan(table, options);
  if (!scan.ok()) return scan.status();
  return Iterator(std::move(*scan));
}

Result<uint64_t> Snapshot::count(const Table& table) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  return read_table(table, [&](const TableVersion& t) -> Result<uint64_t> {
    if (t.segments.empty()) return uint64_t{0};
    if (t.segments.size() == 1) {
      STRIDE_TRY(t.segments[0]->open_failure());
      const SegmentRecord& record = t.segments[0]->record();
      if (t.segments[0]->may_expire()) return count_merged(*version()->backend, t.segments);
      if (record.tombstones == 0) return t.segments[0]->live_rows();
      if (record.erased.empty()) return record.rows - record.tombstones;
    }
    return count_merged(*version()->backend, t.segments);
  });
}

Result<uint64_t> Snapshot::count(const Table& table, std::optional<Bytes> from,
                                 std::optional<Bytes> to) const {
  if (!from && !to) return count(table);
  const WorkWatch::Scope watched(WorkWatch::offered());
  uint64_t rows = 0;
  Status s = read_sorted(table, 1, [&](const std::vector<SortedRows>& sources) {
    return count_range(*version()->backend, sources, from, to, &rows);
  });
  if (!s.ok()) return s;
  return rows;
}

Status Snapshot::count(const Table& table, const KeyColumn& from, const KeyColumn& to,
                       std::span<uint64_t> counts) const {
  const WorkWatch::Scope watched(WorkWatch::offered());
  return read_sorted(table, from.size, [&](const std::vector<SortedRows>& sources) {
    return count_ranges(*version()->backend, sources, from, to, counts);
  });
}

// The sources keep nothing alive, which is why the cursor keeps the version.
Result<Cursor> Snapshot::cursor(const Table& table, const CursorOptions& options) const {
  return no_throw([&]() -> Result<Cursor> {
    std::unique_ptr<Cursor::Impl> cursor;
    STRIDE_TRY(read_sorted(table, 1, [&](std::vector<SortedRows>& sources) {
      cursor = std::make_unique<Cursor::Impl>(pin(), std::move(sources));
      return cursor->set_bounds(options);
    }));
    return Cursor(std::move(cursor));
  });
}

}  // namespace stride
