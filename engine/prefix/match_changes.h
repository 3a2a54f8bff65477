// What was changed in a prefix table since the base of a matcher (engine/prefix/matcher.h), by what of the
// base is around it.
//
//   STRIDE_TRY(changes.add(backend, table, base, &earlier, rows, newer));
//   if (base.changed[place]) changed.push_back({i, place});  // of the base's answer for address i
//   changes.answer(base, addresses, changed, locations, lengths);
//
// A *change* is a prefix that was put, or one of the base's that was erased. It stands with the
// longest prefix of the base that covers it, which may be itself: its *place*. A prefix that is not
// in the base and was put and then erased leaves no change.
//
// To match an address, begin at the base's longest prefix of it. Of the changes in this place take
// the longest that covers the address; if it was put, it is the answer. If there is none, the
// place's prefix is. If it was erased, go on at the place around, the parent of this one.
//   Proof. Prefixes that cover one address are nested, so that the base's among them are the places
// b1, b2, ... that are gone through, by falling length. A change that covers the address has the
// longest place that is not longer, for a prefix of the base that covers the address and is not
// longer covers the change too. So it has place b1 if it is as long as b1 or longer, and place b2
// if it is shorter than b1 and as long as b2 or longer, and so on (and no place if it is shorter
// than all). Hence all prefixes that are alive are looked at by falling length: the changes of a
// place that are longer than its prefix, then that prefix itself, as it was put or erased or left
// alone.
//
// Changes are sorted by place and in it by key, in one array with a directory, so that a commit
// searches and sorts its own, and merges them into a copy of those before. Most addresses have a
// place without changes, as a bitmap of the base says, to which commits only add: for older
// versions, and where a change was taken back, it sends an address here in vain.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/catalog/segment_list.h"
#include "engine/merge/merged_rows.h"
#include "gpu/backend.h"
#include "gpu/location.h"
#include "storage/column.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

struct MatchBase;

// A bit for each place: each rank of a base, and one for what no prefix of it covers. Thread-safe.
class ChangedPlaces {
 public:
  void reset(uint64_t places) {
    words_ = std::make_unique<std::atomic<uint64_t>[]>(places / 64 + 1);
  }
  void set(uint64_t place) {
    words_[place / 64].fetch_or(uint64_t{1} << place % 64, std::memory_order_relaxed);
  }
  // Relaxed: who has a matcher sees the bits that were set while it was made.
  bool operator[](uint64_t place) const {
    return words_[place / 64].load(std::memory_order_relaxed) >> place % 64 & 1;
  }

 private:
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

// Immutable once made.
class MatchChanges {
 public:
  // earlier: changes since the same base, or null. rows: those of segments that are newer, erasures
  // included. newer: all segments that are newer than the base.
  Status add(Backend& backend, const TableRecord& table, const MatchBase& base,
             const MatchChanges* earlier, const MergedRows& rows, const SegmentList& newer);

  bool empty() const { return changes_.empty(); }

  // An address whose answer may be another than the base's.
  struct Changed {
    uint32_t address;  // which
    uint32_t place;    // of the base's answer
  };
  // Sets the answers of these, where they are not the base's. Uses their memory.
  void answer(const MatchBase& base, const KeyColumn& addresses, std::span<Changed> changed,
              Location* locations, uint32_t* lengths) const;

  // The rows of the changed prefixes by key, and those of their answers: for one that was erased,
  // the longest live prefix that covers it, or Location::absent.
  void list(const MatchBase& base, std::vector<Location>* prefixes,
            std::vector<Location>* answers) const;

 private:
  // Half a cache line.
  struct alignas(32) Change {
    uint64_t head;    // the first 8 bytes of the address, zeros past its end
    uint32_t place;   // a rank of the base, or how many there are
    uint32_t outer;   // the place around that one
    uint32_t age;     // of its segment among the newer ones, the oldest of which has 0
    uint32_t rank;    // there
    uint32_t around;  // so many changes before this one is the longest that covers it; 0: none here
    uint32_t length : 30;  // in bits
    uint32_t is_erased : 1;
    uint32_t is_place : 1;  // the base has this prefix
  };

  // Finds some of the many changes of a place: for each value of the heads' difference from the
  // least one, without its last `shift` bits, where in changes_ they begin.
  struct CrowdedPlace {
    uint32_t place;
    uint32_t shift;
    uint64_t min_head;
    std::vector<uint32_t> starts;  // and the end
  };

  Status collect(Backend& backend, const MatchBase& base, const MergedRows& rows,
                 std::vector<Change>* fresh);
  void merge(std::span<const Change> old, std::span<const Change> fresh);
  void find_around(size_t first);
  void build_directory(uint64_t places);
  void add_crowded(uint32_t first, uint32_t last);
  // Among which the last that begins up to the address is, or those before are all such.
  std::span<const Change> candidates(uint32_t place, uint64_t head) const;
  Location row_of(const Change& change) const {
    return {static_cast<uint32_t>(keys_.size()) - 1 - change.age, change.rank};
  }
  // is_known: that the base's answer is set, and there are changes in its place.
  void go_on(const MatchBase& base, const KeyColumn& addresses, std::span<Changed> changed,
             bool is_known, Location* locations, uint32_t* lengths) const;
  bool before(const Change& a, const Change& b) const;  // by key
  bool covers(const Change& change, Bytes address, uint64_t head) const;
  bool covers(const Change& a, const Change& b) const;
  // The longest that covers the address, or null.
  const Change* longest(uint32_t place, Bytes address, uint64_t head) const;
  Bytes address_of(const Change& change) const;

  uint32_t address_bits_ = 0;
  std::vector<PackedColumn> keys_;  // of the newer segments, oldest first
  std::vector<Change> changes_;
  // Where the changes of each bucket of 2^shift places begin, and the end.
  std::vector<uint32_t> starts_;
  uint32_t shift_ = 0;
  std::vector<CrowdedPlace> crowded_;  // by place
};

}  // namespace stride
