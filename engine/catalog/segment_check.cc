#include "engine/catalog/segment_check.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "gpu/key_statistics.h"
#include "storage/key_filter.h"
#include "storage/prefix_key.h"

namespace stride {
namespace {

constexpr uint64_t rows_per_task = 1 << 14;

// The first row that is bad, of rows [0, rows); `rows` where none is. find(begin, end): the first
// of those, or `end`.
template <class Find>
uint64_t first_bad_of(Backend& backend, uint64_t rows, const Find& find) {
  std::atomic<uint64_t> first_bad_row{rows};
  backend.parallel_for(rows, rows_per_task, [&](uint64_t begin, uint64_t end) {
    const uint64_t row = find(begin, end);
    uint64_t seen = first_bad_row.load(std::memory_order_relaxed);
    while (row < end && row < seen && !first_bad_row.compare_exchange_weak(seen, row)) {
    }
  });
  return first_bad_row;
}

template <class IsBad>
uint64_t first_bad(Backend& backend, uint64_t rows, const IsBad& is_bad) {
  return first_bad_of(backend, rows, [&](uint64_t row, uint64_t end) {
    while (row < end && !is_bad(row)) ++row;
    return row;
  });
}

Status check_keys(Backend& backend, const IndexedSegment& segment) {
  const PackedColumn& keys = segment.keys();
  if (keys.size == 0) return {};
  uint64_t bad = first_bad_of(backend, keys.size, [&](uint64_t begin, uint64_t end) {
    return first_not_ascending(keys, begin, end);
  });
  if (bad < keys.size)
    return segment.segment().damage(SectionType::key_data,
                                    "does not ascend at row " + std::to_string(bad),
                                    static_cast<uint64_t>(keys[bad].data() - keys.data));
  if (compare(keys[0], segment.first_key()) == 0 &&
      compare(keys[keys.size - 1], segment.last_key()) == 0)
    return {};
  return segment.segment().damage(SectionType::statistics, "names other first and last keys");
}

Status check_prefixes(Backend& backend, const IndexedSegment& segment, uint32_t address_bits) {
  const PackedColumn& keys = segment.keys();
  uint64_t bad = first_bad(backend, keys.size,
                           [&](uint64_t row) { return !is_prefix_key(keys[row], address_bits); });
  if (bad == keys.size) return {};
  return segment.segment().damage(SectionType::key_data,
                                  "has a key that is no prefix, of row " + std::to_string(bad),
                                  static_cast<uint64_t>(keys[bad].data() - keys.data));
}

// Where they have one width, that has been compared when the segment was opened.
Status check_numbers(Backend& backend, const IndexedSegment& segment, uint64_t width) {
  const ValueRows& values = segment.values();
  if (values.column.fixed) return {};
  const uint64_t rows = segment.rows();
  STRIDE_TRY(segment.ensure_rows(0, rows));
  uint64_t bad = first_bad(backend, rows, [&](uint64_t row) {
    return segment.kind(row) == EntryKind::put && values[row].size() != width;
  });
  if (bad == rows) return {};
  return segment.segment().damage(SectionType::value_data,
                                  "has a value that is no number, of row " + std::to_string(bad));
}

// What the manifest says decides when rows go.
Status check_ends(Backend& backend, const IndexedSegment& segment, const ExpiryCell& cell) {
  const uint64_t rows = segment.rows();
  STRIDE_TRY(segment.ensure_rows(0, rows));
  const ExpiryRange& told = segment.record().expiry;
  const ExpiryCheck check = cell.at(0);
  uint64_t bad = first_bad(backend, rows, [&](uint64_t row) {
    if (segment.kind(row) != EntryKind::put) return false;
    const int64_t end = check.end_of(segment.values()[row]);
    return end < told.first || end > told.last;
  });
  if (bad == rows) return {};
  return segment.segment().damage(
      SectionType::value_data,
      "has a row that ends at another time than the manifest says, row " + std::to_string(bad));
}

Status check_searches(Backend& backend, const IndexedSegment& segment) {
  STRIDE_TRY(segment.prepare());
  const IndexView index = segment.index();
  const uint64_t rows = segment.rows();
  uint64_t bad = first_bad_of(
      backend, rows, [&](uint64_t begin, uint64_t end) { return first_misled(index, begin, end); });
  if (bad == rows) return {};
  return segment.segment().damage(SectionType::tree,
                                  "does not lead to the key of row " + std::to_string(bad));
}

// A key that its filter denies would not be found.
Status check_filter(Backend& backend, const IndexedSegment& segment) {
  const KeyFilter& filter = segment.filter();
  if (!filter.is_there()) return {};
  const PackedColumn& keys = segment.keys();
  uint64_t bad = first_bad(backend, keys.size,
                           [&](uint64_t row) { return !filter.may_contain(hash_key(keys[row])); });
  if (bad == keys.size) return {};
  const uint64_t blocks = filter.bytes() / KeyFilter::block_bytes;
  return segment.segment().damage(
      SectionType::key_filter, "denies the key of row " + std::to_string(bad),
      KeyFilter::block_of(hash_key(keys[bad]), blocks) * KeyFilter::block_bytes);
}

Status check_sample(const IndexedSegment& segment) {
  Bytes sample = segment.segment().section(SectionType::key_sample);
  if (sample.empty()) return {};
  Status s = KeyStatistics::parse(sample).status();
  return s.ok() ? s : segment.segment().damage(SectionType::key_sample, "is none: " + s.message());
}

Status verify_indexed(Backend& backend, const IndexedSegment& segment, const TableRecord& table) {
  STRIDE_TRY(segment.segment().verify());
  STRIDE_TRY(check_record(segment.segment(), segment.record(), table));
  STRIDE_TRY(check_rows(backend, segment, table));
  STRIDE_TRY(check_sample(segment));
  STRIDE_TRY(check_filter(backend, segment));
  return check_searches(backend, segment);
}

}  // namespace

// What this process has written lately is in its memory: the file is what counts.
Status verify_segment(FileSystem& fs, Backend& backend, const IndexedSegment& segment,
                      const TableRecord& table) {
  Segment& held = segment.segment();
  STRIDE_TRY(held.open_failure());
  if (held.mapping()) return verify_indexed(backend, segment, table);
  STRIDE_TRY(held.finish_write());
  auto stored = Segment::open(fs, held.path(), held.id());
  if (stored.ok())
    return verify_indexed(backend, IndexedSegment(nullptr, *stored, segment.record()), table);
  if (stored.status().code() != StatusCode::not_found) return stored.status();
  return Status::corruption(held.path(), 0, "the segment's file is missing")
      .with_remedy("compact the database to write its rows again, or restore it from a backup");
}

// Segments of a run lie together.
Status check_runs(const SegmentList& segments) {
  for (size_t first = 0, end; first < segments.size(); first = end) {
    end = first + 1;
    while (end < segments.size() && segments[end]->record().run == segments[first]->record().run)
      ++end;
    std::vector<const IndexedSegment*> run;
    for (size_t i = first; i < end; ++i)
      if (segments[i]->rows() > 0) run.push_back(segments[i].get());
    std::sort(run.begin(), run.end(),
              [](auto* a, auto* b) { return compare(a->first_key(), b->first_key()) < 0; });
    for (size_t i = 1; i < run.size(); ++i)
      if (compare(run[i - 1]->last_key(), run[i]->first_key()) >= 0)
        return run[i]->segment().damage(
            SectionType::key_data,
            "overlaps the keys of " + run[i - 1]->segment().path() + ", which is of the same run");
  }
  return {};
}

Status check_record(const Segment& segment, const SegmentRecord& record, const TableRecord& table) {
  auto differs = [&](const std::string& what) {
    return Status::corruption(segment.path(), 0,
                              "the segment has " + what + " than the manifest says")
        .with_remedy("restore the database from a backup");
  };
  if (segment.rows() != record.rows) return differs("another number of rows");
  if (segment.tombstones() != record.tombstones) return differs("another number of tombstones");
  if (segment.bytes_on_disk() != record.bytes) return differs("another size");
  if (segment.rows() == 0) return {};
  const PackedColumn keys = segment.keys(), values = segment.values().column;
  if (table.key_width != 0 && !(keys.fixed && keys.width == table.key_width))
    return differs("keys of another width");
  // Tombstones have no value, and such as lie among numbers make the width vary.
  bool numbers = table.numbers == NumberType::none || !values.fixed ||
                 values.width == width_of(table.numbers) || record.tombstones == record.rows;
  return numbers ? Status() : differs("values of another width");
}

Status check_rows(Backend& backend, const IndexedSegment& segment, const TableRecord& table) {
  STRIDE_TRY(segment.ensure_keys());
  STRIDE_TRY(check_keys(backend, segment));
  if (table.address_bits != 0) STRIDE_TRY(check_prefixes(backend, segment, table.address_bits));
  if (table.expiry) STRIDE_TRY(check_ends(backend, segment, *table.expiry));
  if (table.numbers == NumberType::none) return {};
  return check_numbers(backend, segment, width_of(table.numbers));
}

Status verify_table(FileSystem& fs, Backend& backend, const TableRecord& table,
                    const SegmentList& segments) {
  for (const auto& segment : segments) STRIDE_TRY(verify_segment(fs, backend, *segment, table));
  return check_runs(segments);
}

}  // namespace stride
