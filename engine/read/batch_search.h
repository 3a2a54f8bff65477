// Finds the newest entry of each key of a batch, in all segments of a table, on the device and on
// the host.
//
//   BatchSearch search(executor, segments, queries.column().size);
//   STRIDE_TRY(search.prepare(&queries));
//   STRIDE_TRY(search.locate(&queries, take));      // blocks of locations, on all threads
//   resolve(search.sources(), first, locations, put, absent);  // entries, and where values lie
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/device/executor.h"
#include "engine/read/cold_read.h"
#include "gpu/backend.h"
#include "storage/prefetch.h"
#include "storage/stream_store.h"

namespace stride {

// Rows between a prefetch and the use of what it fetches.
inline constexpr uint64_t prefetch_distance = 24;

// What a gather needs of a segment, in one small struct.
struct Source {
  const IndexedSegment* segment;
  ValueRows values;
  const uint8_t* kinds;        // as they are stored
  const RowIntervals* erased;  // null: none of its rows is
  bool guarded;
  bool has_tombstones;

  // Whether the row is no entry, but says that there is none. Precondition: it was checked.
  bool hides(uint32_t rank) const {
    return (has_tombstones && segment->kind(rank) == EntryKind::tombstone) ||
           (erased && erased->contains(rank));
  }
};

// What tells where a row's value is, and whether it is a tombstone.
inline void prefetch_position(const Source& source, uint32_t rank) {
  const PackedColumn& v = source.values.column;
  if (source.values.shared()) {
    auto* numbers = static_cast<const std::byte*>(source.values.numbers);
    prefetch(numbers + uint64_t{rank} * source.values.number_width);
  } else if (!v.fixed) {
    auto* deltas = static_cast<const std::byte*>(v.offsets.deltas);
    prefetch(deltas + uint64_t{rank} * v.offsets.delta_width);
    prefetch(v.offsets.bases + (rank >> PackedOffsets::group_bits));
  }
  if (source.kinds) prefetch(source.kinds + rank);
}

// Calls put(first + i, value) for each of the locations where something was found, absent(first +
// i) for the others.
template <class Put, class Absent>
Status resolve(std::span<const Source> sources, uint64_t first, std::span<const Location> locations,
               const Put& put, const Absent& absent) {
  auto look_ahead = [&](uint64_t i) {
    if (i >= locations.size()) return;
    if (Location at = locations[i]; at.found()) prefetch_position(sources[at.index], at.rank);
  };
  for (uint64_t i = 0; i < prefetch_distance; ++i) look_ahead(i);
  for (uint64_t i = 0; i < locations.size(); ++i) {
    look_ahead(i + prefetch_distance);
    Location at = locations[i];
    if (!at.found()) {
      absent(first + i);
      continue;
    }
    const Source& source = sources[at.index];
    if (source.guarded) STRIDE_TRY(source.segment->ensure_rows(at.rank, at.rank + 1));
    if (source.hides(at.rank)) {
      absent(first + i);
    } else {
      put(first + i, at, source.values[at.rank]);
    }
  }
  return {};
}

// Queries that the host can read.
class HostQueries {
 public:
  explicit HostQueries(const KeyColumn& queries) : column_(queries) {}
  const KeyColumn& column() const { return column_; }

  // Copies them from the device, where they lie there.
  Status copy_from(Backend& device);

 private:
  KeyColumn column_;
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_;
};

// A batch on its way through the segments of a table.
class BatchSearch {
 public:
  BatchSearch(Executor& executor, const SegmentList& segments, uint64_t queries);

  // queries: copied to the host where the device does not take them there.
  Status prepare(HostQueries* queries);

  // Hands over where the newest entry of every query lies. What a device fails to do the host does
  // again from the start, after a call of begin_again().
  Status locate(HostQueries* queries, const TakeLocations& take,
                const std::function<void()>& begin_again = {});

  // Whether locate() hands over small blocks, about in the order of the queries, and calls
  // take.meanwhile() whenever a thread has time for what can be done with them.
  bool finds_in_pieces(const KeyColumn& queries) const {
    return batch_.all_on_device() &&
           batch_.device().tree_index().finds_in_pieces(batch_.indexes(), queries);
  }

  // Call after a failure of the device.
  Status leave_device(HostQueries* queries);

  Executor& executor() const { return executor_; }
  Backend& host() const { return *executor_.host(); }
  const Executor::Batch& batch() const { return batch_; }
  std::span<const Source> sources() const { return sources_; }
  ColdReader& cold() { return cold_; }
  // The width of all values; 0: they differ, are shared, or there are none.
  uint64_t value_width() const;
  // Neither checksums nor tombstones nor erased rows are in the way of a row.
  bool is_plain() const;

 private:
  // The device searches what it has and the host what is left; the newer of two entries wins.
  Status locate_mixed(const KeyColumn& queries, const TakeLocations& take);

  Executor& executor_;
  const SegmentList& segments_;
  ColdReader cold_;
  Executor::Batch batch_;
  std::vector<Source> sources_;
};

// Puts a block of locations where it belongs, and what was found into the bitmap.
inline void put_block(uint64_t first, std::span<const Location> block, Location* locations,
                      uint64_t total_bytes, std::span<uint64_t> found) {
  copy_result(locations + first, block.data(), block.size_bytes(), total_bytes);
  set_bits(found, first, block.size(), [&](uint64_t i) { return block[i].found(); });
}

}  // namespace stride
