#include "engine/monitoring/state_metrics.h"

#include <utility>

#include "engine/memtable/memtable.h"

namespace stride {
namespace {

TableStatistics statistics_of(const Version& version, const TableVersion& t) {
  TableStatistics s;
  s.name = t.table->name;
  s.key_width = t.table->key_width;
  s.address_bits = t.table->address_bits;
  s.share_equal_values = t.table->share_equal_values;
  s.numbers = t.table->numbers;
  s.overflow = t.table->sums_wrap ? Overflow::wrap : Overflow::error;
  for (const auto& segment : t.segments) {
    s.rows += segment->live_rows();  // as far as the manifest knows, if it cannot be read
    s.erased_rows += segment->erased().rows();
    s.reclaimable_bytes += segment->record().bytes - segment->live_bytes();
    s.stored_values += segment->values().column.size;
    s.saved_bytes += segment->segment().saved_bytes();
    s.filter_bytes += segment->filter().bytes();
    s.bytes_on_disk += segment->record().bytes;
    s.resident_bytes += segment->segment().resident_bytes();
    if (auto copy = segment->device_slot().get()) s.device_bytes += copy->index->memory_bytes();
  }
  auto count_tail = [&](const Memtable& memtable) {
    if (const TableTail* tail = memtable.find(t.table->id)) s.memtable_rows += tail->rows();
  };
  if (version.memtable) count_tail(*version.memtable);
  for (const SealedMemtable& sealed : version.sealed) count_tail(*sealed.rows);
  s.rows += s.memtable_rows;
  s.stored_values += s.memtable_rows;
  s.runs = count_runs(t.segments);
  s.segments = t.segments.size();
  return s;
}

// Bytes of the table's oldest run without its erased rows.
uint64_t oldest_run_bytes(const SegmentList& segments) {
  uint64_t bytes = 0;
  if (segments.empty()) return bytes;
  const uint64_t run = (*segments.rbegin())->record().run;
  for (const auto& segment : segments)
    if (segment->record().run == run) bytes += segment->live_bytes();
  return bytes;
}

}  // namespace

std::vector<TableStatistics> table_statistics(const Version& version) {
  std::vector<TableStatistics> result;
  for (size_t i = 0; i < version.tables.size(); ++i)
    result.push_back(statistics_of(version, *version.tables[i]));
  return result;
}

StateMetrics state_metrics(const Version& version) {
  StateMetrics state;
  state.tables = table_statistics(version);
  uint64_t oldest_bytes = 0;
  for (size_t i = 0; i < version.tables.size(); ++i) {
    const SegmentList& segments = version.tables[i]->segments;
    oldest_bytes += oldest_run_bytes(segments);
    for (const auto& segment : segments)
      state.device_segments += segment->device_slot().get() != nullptr;
  }
  for (const TableStatistics& t : state.tables) {
    state.runs += t.runs;
    state.segments += t.segments;
    state.rows += t.rows;
    state.memtable_rows += t.memtable_rows;
    state.segment_bytes += t.bytes_on_disk;
    state.resident_bytes += t.resident_bytes;
    state.device_bytes += t.device_bytes;
  }
  for (const SealedMemtable& sealed : version.sealed) {
    state.memtable_bytes += sealed.memory_bytes;
    state.log_bytes += sealed.log_bytes;
  }
  state.sealed_memtables = version.sealed.size();
  if (oldest_bytes > 0)
    state.space_amplification =
        static_cast<double>(state.segment_bytes) / static_cast<double>(oldest_bytes);
  return state;
}

}  // namespace stride
