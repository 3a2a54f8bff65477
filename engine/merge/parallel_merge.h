// Merges of segments in parallel, by key ranges of some ten thousand rows.
//
//   Result<ParallelMerge> merge = ParallelMerge::make(segments, Tombstones::drop);
//   std::vector<Location> order;   // the newest entries of the next keys
//   for (size_t part = 0, end; part < merge->parts(); part = end) {
//     end = merge->end_of_step(part, max_rows);
//     STRIDE_TRY(merge->run(backend, part, end, stop, &order));
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/catalog/segment_list.h"
#include "engine/merge/merged_rows.h"
#include "engine/merge/merger.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// Immutable once it is made.
class ParallelMerge {
 public:
  // segments: newest first. corruption: keys do not ascend.
  static Result<ParallelMerge> make(const SegmentList& segments, Tombstones tombstones);

  const SegmentList& segments() const { return segments_; }
  size_t parts() const { return ranks_.size() - 1; }
  // Behind as many parts as have no more rows together; behind one part, if that alone has more.
  size_t end_of_step(size_t first, uint64_t max_rows) const;
  // The ranks of the first row of a part in each segment; of the parts' number: behind the last
  // row.
  const std::vector<uint64_t>& ranks(size_t part) const { return ranks_[part]; }
  // At least the bytes of the keys and values of these parts.
  uint64_t max_bytes(size_t first, size_t end) const;
  // The newest entries of all keys in parts [first, end), in key order; they take 16 bytes each
  // meanwhile, and then 8. part_rows: how many each part has are appended to it; null: nobody asks.
  // stop: where it becomes true, the merge ends with `closed`. Null: it never does.
  Status run(Backend& backend, size_t first, size_t end, const std::atomic<bool>* stop,
             std::vector<Location>* order, std::vector<uint64_t>* part_rows = nullptr) const;
  // The same of one part, on this thread.
  Status run_part(size_t part, std::vector<Location>* order) const;

 private:
  ParallelMerge(const SegmentList& segments, Tombstones tombstones)
      : segments_(segments), tombstones_(tombstones) {}
  Status cut();
  Status cut_at(Bytes key);

  SegmentList segments_;
  Tombstones tombstones_;
  std::vector<std::vector<uint64_t>> ranks_;
};

// All of that in one step.
Status merge_all(Backend& backend, const SegmentList& segments, MergedRows* merged,
                 Tombstones tombstones = Tombstones::drop);
// How many rows that leaves, without tombstones.
Result<uint64_t> count_merged(Backend& backend, const SegmentList& segments);

}  // namespace stride
