#include "engine/snapshot.h"

#include <mutex>

#include "engine/lookup.h"
#include "engine/matcher.h"
#include "engine/merge.h"
#include "engine/no_throw.h"
#include "engine/prefixes.h"
#include "engine/scan_impl.h"
#include "engine/version.h"

namespace stride {
namespace {

Result<const TableVersion*> find_table(const Version& version, const Table& table) {
  const TableVersion* found = version.find(table.id());
  if (found) return found;
  return Status(StatusCode::not_found, "table '" + table.name() + "' is not in this snapshot")
      .with_remedy("take the snapshot after the table is created and before it is dropped");
}

// The first live entry that is not below the query, among the newest of each key.
Status first_live(const SegmentList& segments, const std::vector<uint64_t>& ranks, Bytes* key,
                  Bytes* value, bool* found) {
  std::vector<RunMerger::Input> inputs;
  for (uint32_t s = 0; s < segments.size(); ++s)
    inputs.push_back({segments[s].get(), s, ranks[s], segments[s]->rows()});
  RunMerger merger(std::move(inputs), /*reverse=*/false);
  Location at;
  *found = false;
  while (merger.next(&at)) {
    const IndexedSegment& segment = *segments[at.index];
    if (segment.kind(at.rank) == EntryKind::tombstone) continue;
    *key = segment.keys()[at.rank];
    *value = segment.values()[at.rank];
    *found = true;
    return {};
  }
  return merger.status();
}

Status find_prefix_table(const Version& version, const Table& table, const TableVersion** out) {
  auto found = find_table(version, table);
  if (!found.ok()) return found.status();
  *out = *found;
  if ((*found)->matcher) return {};
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
  STRIDE_TRY(table.matcher->get(*version.residency, table, &matcher));
  return matcher->match(*version.residency, addresses, result);
}

}  // namespace

Result<std::optional<Bytes>> Snapshot::get(const Table& table, Bytes key) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return lookup_one((*found)->segments, key);
}

Status Snapshot::find(const Table& table, const KeyColumn& queries, FindResult* result) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return no_throw(
      [&] { return lookup_references(*version_->residency, (*found)->segments, queries, result); });
}

Status Snapshot::get(const Table& table, const KeyColumn& queries, GetResult* result) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return no_throw(
      [&] { return lookup_copies(*version_->residency, (*found)->segments, queries, result); });
}

Status Snapshot::find_device(const Table& table, const KeyColumn& queries, Location* out,
                             void* stream) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return no_throw([&] {
    return find_on_device(*version_->residency, (*found)->segments, queries, out, stream);
  });
}

Status Snapshot::get_device(const Table& table, const KeyColumn& queries, const DeviceValues& out,
                            void* stream) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return no_throw([&] {
    return get_on_device(*version_->residency, (*found)->segments, queries, out, stream);
  });
}

Status Snapshot::lower_bound(const Table& table, const KeyColumn& queries,
                             LowerBoundResult* result) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  const SegmentList& segments = (*found)->segments;
  result->found.reset(queries.size);
  result->keys.reset(queries.size);
  result->values.reset(queries.size);
  std::vector<std::vector<uint32_t>> ranks(segments.size());
  for (size_t s = 0; s < segments.size(); ++s) {
    STRIDE_TRY(segments[s]->prepare());
    ranks[s].resize(queries.size);
    STRIDE_TRY(version_->backend->lower_bound(segments[s]->index(), queries, ranks[s]));
  }
  std::mutex mutex;
  Status failure;
  // 64 queries: a word of the bitmap belongs to one thread.
  version_->backend->parallel_for((queries.size + 63) / 64, 16, [&](uint64_t begin, uint64_t end) {
    std::vector<uint64_t> first(segments.size());
    for (uint64_t i = begin * 64; i < std::min(queries.size, end * 64); ++i) {
      for (size_t s = 0; s < segments.size(); ++s) first[s] = ranks[s][i];
      bool live;
      result->keys[i] = result->values[i] = {};
      Status s = first_live(segments, first, &result->keys[i], &result->values[i], &live);
      if (live) result->found.set(i);
      if (s.ok()) continue;
      std::lock_guard lock(mutex);
      failure = std::move(s);
    }
  });
  return failure;
}

Status Snapshot::match(const Table& table, const KeyColumn& addresses, MatchResult* result) const {
  const TableVersion* found;
  STRIDE_TRY(find_prefix_table(*version_, table, &found));
  STRIDE_TRY(check_addresses(*found->table, addresses));
  return no_throw([&] { return match_batch(*version_, *found, addresses, result); });
}

Status Snapshot::match_device(const Table& table, const KeyColumn& addresses, Location* out,
                              void* stream) const {
  const TableVersion* found = nullptr;
  STRIDE_TRY(find_prefix_table(*version_, table, &found));
  return no_throw([&] {
    std::shared_ptr<const Matcher> matcher;
    STRIDE_TRY(found->matcher->get(*version_->residency, *found, &matcher));
    return matcher->match_device(*version_->residency, addresses, out, stream);
  });
}

Result<std::optional<PrefixEntry>> Snapshot::match(const Table& table, Bytes address) const {
  const TableVersion* found;
  STRIDE_TRY(find_prefix_table(*version_, table, &found));
  STRIDE_TRY(check_address(*found->table, 0, address.size()));
  std::optional<PrefixEntry> entry;
  Status status = no_throw([&] {
    uint64_t offsets[] = {0, address.size()};
    KeyColumn one = Column::variable(address.data(), offsets, 1);
    MatchResult result;
    STRIDE_TRY(match_batch(*version_, *found, one, &result));
    if (result.found[0]) entry = {result.prefix(0), result.lengths[0], result.value(0)};
    return Status();
  });
  if (!status.ok()) return status;
  return entry;
}

Result<std::vector<PrefixEntry>> Snapshot::match_all(const Table& table, Bytes address) const {
  const TableVersion* found;
  STRIDE_TRY(find_prefix_table(*version_, table, &found));
  STRIDE_TRY(check_address(*found->table, 0, address.size()));
  std::vector<PrefixEntry> entries;
  STRIDE_TRY(
      no_throw([&] { return stride::match_all(*version_->residency, *found, address, &entries); }));
  return entries;
}

Result<Scan> Snapshot::inside(const Table& table, Bytes prefix_key) const {
  const TableVersion* found;
  STRIDE_TRY(find_prefix_table(*version_, table, &found));
  auto bounds = scan_inside(prefix_key, found->table->address_bits);
  if (!bounds.ok()) return bounds.status();
  return make_scan(version_, *found, *bounds);
}

Result<Scan> Snapshot::scan(const Table& table, const ScanOptions& options) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return make_scan(version_, **found, options);
}

Result<Iterator> Snapshot::iterate(const Table& table, const ScanOptions& options) const {
  auto scan = this->scan(table, options);
  if (!scan.ok()) return scan.status();
  return Iterator(std::move(*scan));
}

Result<uint64_t> Snapshot::count(const Table& table) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  const SegmentList& segments = (*found)->segments;
  if (segments.empty()) return uint64_t{0};
  if (segments.size() == 1) {
    const SegmentRecord& record = segments[0]->record();
    return record.rows - record.tombstones;
  }
  MergedRows merged;
  STRIDE_TRY(merge_all(*version_->backend, segments, &merged));
  return merged.size();
}

}  // namespace stride
