#include "engine/snapshot.h"

#include <mutex>

#include "engine/lookup.h"
#include "engine/merge.h"
#include "engine/no_throw.h"
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

}  // namespace

Result<std::optional<Bytes>> Snapshot::get(const Table& table, Bytes key) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return lookup_one((*found)->segments, key);
}

Status Snapshot::find(const Table& table, const KeyColumn& queries, FindResult* result) const {
  auto found = find_table(*version_, table);
  if (!found.ok()) return found.status();
  return no_throw([&] {
    return lookup_references(*version_->residency, (*found)->segments, queries, result);
  });
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
