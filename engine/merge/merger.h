// Merging segments: the newest entry of each key, in key order, forwards or backwards.
//
//   RunMerger merger({{newer, 0, 0, newer->rows()}, {older, 1, 0, older->rows()}}, false);
//   Location rows[4096];
//   while (uint64_t n = merger.next_rows(rows)) use(std::span(rows).first(n));
//   if (!merger.status().ok()) ...
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/catalog/indexed_segment.h"
#include "engine/catalog/segment_list.h"
#include "engine/merge/merged_rows.h"
#include "gpu/backend.h"

namespace stride {

// Whether a merge hands out tombstones, too, where they are the newest entry of their key.
enum class Tombstones : uint8_t { drop, keep };

// A k-way merge of rank intervals by a loser tree (Knuth, The Art of Computer Programming
// 3, 5.4.1): log2(k) comparisons an entry, without a branch that depends on their outcome. What is
// compared first are 16 bytes of each key, after those that all keys share; they are read ahead for
// a window of rows, whose checksums are checked then. Not thread-safe. The segments must outlive
// it. Erased rows are passed over: they hide nothing (IndexedSegment::erased()).
class RunMerger {
 public:
  struct Input {
    const IndexedSegment* segment;
    uint32_t index;        // in the newest-first list: smaller wins
    uint64_t first, last;  // ranks
  };
  // inputs: newest first. All keys in them are known to share their first `shared_bytes` bytes.
  RunMerger(const std::vector<Input>& inputs, bool reverse, uint64_t shared_bytes = 0,
            Tombstones tombstones = Tombstones::drop);

  // Sets the first rows of `out` to the newest entries of the next keys and returns how many. Fewer
  // than there is room for, and from then on 0, at the end or where damage ends the merge
  // (status()). The rows' bytes have been checked.
  uint64_t next_rows(std::span<Location> out);
  bool next(Location* row) { return next_rows({row, 1}) == 1; }

  // Where the next rows, `least` or more of them, are neighbours in a segment: sets *stretch to
  // them (to `most` at most), takes them for handed out and returns true. Their bytes have been
  // checked. Only forwards.
  bool next_stretch(uint64_t min_rows, uint64_t max_rows, Input* stretch);

  const Status& status() const { return status_; }

 private:
  // 16 bytes of a key as a number, zeros where it is shorter. Backwards all its bits are flipped,
  // so that what has the smallest one comes first in either direction.
  struct Prefix {
    uint64_t high, low;
  };
  // What comes first has the smallest prefix and, of equal keys, the smallest source (the newest).
  // Where a source is used up it has the largest prefix and its number plus `ended`.
  struct Entry {
    Prefix prefix;
    uint64_t source;
  };
  static constexpr uint64_t ended = uint64_t{1} << 32;
  static constexpr Entry nothing{{~uint64_t{0}, ~uint64_t{0}}, ~uint64_t{0}};

  // The losers: node i plays the winners of nodes 2 i and 2 i + 1. Word by word, lest a compiler
  // load two at once that were stored one by one: that takes as long as a cache miss.
  struct Tree {
    uint64_t* high;
    uint64_t* low;
    uint64_t* source;
  };

  // What equal prefixes say about the keys. equal_in_one_word: low words mean nothing.
  enum class Ties { equal_in_one_word, equal_in_two_words, compare_keys };

  // A cache line. The window holds the high words of the rows at `rank` and after it, and their low
  // words `window_capacity_` further on.
  struct alignas(64) Source {
    const uint64_t* next;
    const uint64_t* end;
    uint64_t* window;
    uint64_t left;  // rows that are in no window yet, up to the next erased one
    const IndexedSegment* segment;
    const uint8_t* kinds;  // of row r: kinds[r & kind_mask]
    uint32_t kind_mask;    // 0: all rows count as kinds[0]
    uint32_t rank;
    uint32_t index;
    uint16_t window_rows;  // of the next window, if there are as many
    uint16_t max_window_rows;
  };

  uint32_t step() const { return reverse_ ? ~uint32_t{0} : 1; }  // from one rank to the next
  Bytes key(uint64_t source, uint64_t rank) const { return sources_[source].segment->keys()[rank]; }
  Prefix prefix(const Source& source, uint64_t rank) const;
  void find_shared_bytes(const std::vector<Input>& inputs, uint64_t known);
  void add_source(const Input& input);
  Status check_ahead(const Source& source, uint64_t* rows) const;
  // Where rows may have ended, finds out which of the next ones have.
  void look_at_kinds(const Source& source, uint64_t rows);
  bool find_next_stretch(Source* source) const;
  void fill(Source* source);
  static void grow_window(Source* source);
  Entry entry(uint64_t source) const;
  Entry play(size_t node);
  bool before(const Entry& a, const Entry& b) const;
  bool before_by_key(uint64_t a, uint64_t b) const;  // the current rows of two sources
  bool handed_out_low(const Entry& entry) const;
  Prefix challenger(uint64_t source) const;
  template <Ties ties>
  void replay(Entry* entry);
  void replay_top();
  template <Ties ties>
  uint64_t merge(std::span<Location> out);
  uint64_t pop_windows(uint64_t source, std::span<Location> out);

  const bool reverse_;
  const uint64_t flip_;  // of a prefix's words
  const Tombstones tombstones_;
  uint64_t skip_ = 0;  // bytes that all keys share
  Ties ties_ = Ties::compare_keys;
  std::vector<Source> sources_;
  std::vector<uint64_t> limits_;  // of each source: where its rows end or, backwards, begin
  std::unique_ptr<uint64_t[]> windows_;
  // Of a source whose rows may have ended, where a window's kinds are found out: room for one, the
  // kind of row r at r modulo that.
  std::vector<std::unique_ptr<uint8_t[]>> window_kinds_;
  uint64_t window_capacity_;
  size_t leaves_ = 1;  // sources, rounded up to a power of 2
  Tree tree_;
  std::unique_ptr<uint64_t[]> tree_memory_;
  Entry top_ = nothing;   // the winner
  Prefix last_prefix_{};  // handed out last, or superseded since
  Location last_{};       // the same: its source and rank
  Status status_;
};

}  // namespace stride
