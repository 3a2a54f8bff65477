// Merging segments: the newest entry of each key, in key order, forwards or backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/row_source.h"
#include "engine/version.h"
#include "gpu/backend.h"

namespace stride {

// A k-way merge of rank intervals over a binary heap: O(log k) comparisons an entry. Not
// thread-safe. The segments must outlive it.
class RunMerger {
 public:
  struct Input {
    const IndexedSegment* segment;
    uint32_t index;        // in the newest-first list: smaller wins
    uint64_t first, last;  // ranks
  };
  RunMerger(std::vector<Input> inputs, bool reverse);

  // The next key's newest entry, tombstones included. False at the end or on damage (status()).
  // The row's bytes have been checked.
  bool next(Location* location);
  const Status& status() const { return status_; }

 private:
  struct Cursor {
    Input input;
    uint64_t prefix;  // the key's first 8 bytes, which settle most comparisons
    Bytes key;
  };
  uint64_t rank(const Cursor& c) const { return reverse_ ? c.input.last - 1 : c.input.first; }
  // Whether a comes out after b.
  bool after(const Cursor& a, const Cursor& b) const;
  bool load(Cursor* cursor);  // its current key; false at its end or on damage
  void advance(Cursor* cursor);
  void sift_down();
  bool superseded(const Cursor& c) const;  // its key has been handed out

  std::vector<Cursor> heap_;
  Bytes last_key_;  // handed out last; in its segment
  uint64_t last_prefix_ = 0;
  bool any_ = false;
  bool reverse_;
  Status status_;
};

// The newest entries of all segments, without tombstones, in key order; merged in parallel by key
// ranges.
Status merge_all(Backend& backend, const SegmentList& segments, MergedRows* merged);

}  // namespace stride
