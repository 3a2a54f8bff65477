// The data-parallel passes of which a match tree is built (match_layout.h): what one task of each
// does. The same functions run on host threads and on a device; match_build.h puts them in order.
//
// Prefixes are in the order of their keys, so those inside prefix i follow it without a gap, up to
// the first that begins behind its end: `after` of i.
#pragma once

#include <cstdint>

#include "gpu/keys/atomic_bits.h"
#include "gpu/keys/key_bits.h"
#include "gpu/location.h"
#include "gpu/match/match_layout.h"
#include "gpu/match/match_number.h"
#include "gpu/match/match_plan.h"
#include "gpu/match/match_tree.h"
#include "gpu/tree/tree_passes.h"
#include "storage/prefix_key.h"

namespace stride {

// Prefixes of up to 128 bits. A prefix ends where its last bit, counted up, carries to; 0 stands
// for the end of all addresses.
template <class Number>
struct PrefixArrays {
  const Number* begins;
  const Number* ends;
  uint32_t size;
};

template <class Number>
struct ReadPrefixes {
  const std::byte* keys;
  uint32_t width, address_bits;
  Number* begins;
  Number* ends;

  STRIDE_HD void operator()(uint64_t i) const {
    AddressesOf<Number> addresses{keys, address_bytes(address_bits), width};
    uint32_t length = prefix_length(Bytes(keys + i * width, width), address_bits);
    Number begin = addresses[i];
    begins[i] = begin;
    ends[i] = length ? begin + (Number{1} << (number_bits<Number> - length)) : 0;
  }
};

template <class Number>
struct FindAfter {
  PrefixArrays<Number> prefixes;
  uint32_t* after;

  STRIDE_HD void operator()(uint64_t i) const {
    auto first = static_cast<uint32_t>(i) + 1;
    Number end = prefixes.ends[i];
    if (end == 0) {
      after[i] = prefixes.size;
      return;
    }
    // Most are near: ever larger steps, then halves.
    uint32_t step = 1;
    uint32_t last = first;
    while (last < prefixes.size && prefixes.begins[last] < end) {
      first = last + 1;
      step = step < (1u << 30) ? step * 2 : step;
      last = prefixes.size - first < step ? prefixes.size : first + step;
    }
    while (first < last) {
      uint32_t middle = first + (last - first) / 2;
      if (prefixes.begins[middle] < end) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    after[i] = first;
  }
};

// The largest `after` of 32 neighbours each, of 32 of those, and so on.
struct AfterTree {
  static constexpr uint32_t fan_out = 32;
  static constexpr uint32_t max_levels = 7;  // for 2^31 prefixes
  const uint32_t* level[max_levels];         // level 0: `after`
  uint32_t levels;

  // The last prefix before i that has i inside, or Location::absent: it is the longest, for what
  // begins later is inside of what has i inside too.
  STRIDE_HD uint32_t around(uint32_t i) const {
    uint32_t at = i;
    for (uint32_t l = 0; l < levels; ++l, at /= fan_out) {
      for (uint32_t first = at / fan_out * fan_out; at > first;) {
        if (level[l][--at] > i) return descend(l, at, i);
      }
    }
    return Location::absent;
  }

 private:
  STRIDE_HD uint32_t descend(uint32_t l, uint32_t at, uint32_t i) const {
    while (l-- > 0) {
      at = at * fan_out + fan_out - 1;
      while (level[l][at] <= i) --at;
    }
    return at;
  }
};

struct LargestOfLevel {
  const uint32_t* below;
  uint32_t size;  // of the level below
  uint32_t* out;
  STRIDE_HD void operator()(uint64_t i) const {
    uint64_t first = i * AfterTree::fan_out;
    uint64_t last = size - first < AfterTree::fan_out ? size : first + AfterTree::fan_out;
    uint32_t most = 0;
    for (uint64_t k = first; k < last; ++k) most = below[k] > most ? below[k] : most;
    out[i] = most;
  }
};

struct FindParents {
  AfterTree tree;
  uint32_t* parents;
  STRIDE_HD void operator()(uint64_t i) const {
    parents[i] = tree.around(static_cast<uint32_t>(i));
  }
};

STRIDE_HD inline void add_to(uint32_t* count, uint32_t n) {
#if defined(__CUDA_ARCH__)
  atomicAdd(count, n);
#else
  std::atomic_ref<uint32_t>(*count).fetch_add(n, std::memory_order_relaxed);
#endif
}

// Which boundaries there are. One begins where a prefix begins: of those that begin together the
// last, which is the longest, is the answer. One begins behind a prefix where none begins there: of
// those that end together the outermost says what goes on.
template <class Number>
struct BoundaryRules {
  PrefixArrays<Number> prefixes;
  const uint32_t* after;
  const uint32_t* parents;

  STRIDE_HD bool at_begin(uint32_t i) const {
    return i + 1 == prefixes.size || prefixes.begins[i + 1] != prefixes.begins[i];
  }
  STRIDE_HD bool at_end(uint32_t i) const {
    Number end = prefixes.ends[i];
    if (end == 0) return false;
    if (after[i] < prefixes.size && prefixes.begins[after[i]] == end) return false;
    return parents[i] == Location::absent || prefixes.ends[parents[i]] != end;
  }
};

// counts[i]: boundaries from behind where prefix i - 1 begins up to where prefix i begins.
template <class Number>
struct CountBoundaries {
  BoundaryRules<Number> rules;
  uint32_t* counts;  // prefixes + 1, of 0
  STRIDE_HD void operator()(uint64_t i) const {
    auto k = static_cast<uint32_t>(i);
    if (rules.at_begin(k)) add_to(counts + k, 1);
    if (rules.at_end(k)) add_to(counts + rules.after[k], 1);
  }
};

// first: the scan of those counts; prefixes + 2 numbers.
template <class Number>
struct WriteBoundaries {
  BoundaryRules<Number> rules;
  const uint32_t* first;
  Number* at;
  uint32_t* answers;

  STRIDE_HD void operator()(uint64_t i) const {
    auto k = static_cast<uint32_t>(i);
    if (rules.at_begin(k)) put(first[k + 1] - 1, rules.prefixes.begins[k], k);
    if (!rules.at_end(k)) return;
    uint32_t after = rules.after[k], parent = rules.parents[k];
    // Those with the same `after` are one inside the other: the innermost ends first.
    uint32_t place = first[after + 1] - 1;
    if (after < rules.prefixes.size && rules.at_begin(after)) --place;
    for (uint32_t p = parent; p != Location::absent && rules.after[p] == after;
         p = rules.parents[p]) {
      place -= rules.at_end(p);
    }
    put(place, rules.prefixes.ends[k], parent == Location::absent ? no_match : parent);
  }

 private:
  STRIDE_HD void put(uint32_t place, Number address, uint32_t answer) const {
    at[place] = address;
    answers[place] = answer;
  }
};

// MatchCounts as bins: nodes, as differences between neighbouring depths, then `ending`.
inline constexpr uint32_t match_depths = max_tree_address_bits + 1;
inline constexpr uint32_t match_count_bins = 2 * match_depths;

inline MatchCounts sum_counts(const int64_t (&bins)[match_count_bins]) {
  MatchCounts counts;
  int64_t nodes = 0;
  for (uint32_t depth = 0; depth < match_depths; ++depth) {
    counts.nodes[depth] = nodes += bins[depth];
    counts.ending[depth] = bins[match_depths + depth];
  }
  return counts;
}

template <class Number>
struct CountDepths {
  const Number* at;

  // Counts boundary i + 1. The first boundary is at address 0.
  template <class Add>
  STRIDE_HD void operator()(uint64_t i, const Add& add) const {
    Number last = at[i], x = at[i + 1];
    uint32_t bits = significant_bits(x);
    uint32_t shared = leading_zeros(last ^ x);
    // A node at depth d begins with this boundary where it is the first with bits behind d: the one
    // before does not share d bits with it, or it is the node's very first address.
    uint32_t before = significant_bits(last);
    span(shared + 1, bits, add);
    span(before, shared + 1 < bits ? shared + 1 : bits, add);
    add(match_depths + bits, 1);
  }

 private:
  template <class Add>
  STRIDE_HD void span(uint32_t first, uint32_t last, const Add& add) const {
    if (first >= last) return;
    add(first, 1);
    add(last, -1);
  }
};

// What comes before a boundary in the level that is built.
struct MatchPlace {
  uint32_t entries, children, inside;
};
struct AddPlaces {
  STRIDE_HD MatchPlace operator()(const MatchPlace& a, const MatchPlace& b) const {
    return {a.entries + b.entries, a.children + b.children, a.inside + b.inside};
  }
};

// The boundaries of a level's nodes, one node after the other. Those of a node are neighbours.
template <class Number>
struct MatchLevelInput {
  const Number* at;
  const uint32_t* answers;
  const uint32_t* boundaries;  // null: all
  const uint32_t* nodes;       // of each; null: all of node 0
  uint32_t size;
  uint32_t depth, stride;

  // What a boundary adds to its node's entries.
  struct Part {
    uint32_t boundary, node, slot;
    uint32_t next;  // slot of the boundary that follows in the node, or the number of slots
    bool first;     // of its node
    bool leads;     // the node begins with an entry before it
    bool head;      // it is the first with its slot
    bool child;     // its slot has boundaries inside
    bool trails;    // behind a child there is an entry with its answer
  };
  STRIDE_HD Part part(uint32_t k) const {
    Part p;
    p.boundary = boundaries ? boundaries[k] : k;
    p.node = nodes ? nodes[k] : 0;
    p.slot = slot_of(at[p.boundary], depth, stride);
    p.first = k == 0 || (nodes && nodes[k - 1] != p.node);
    bool last = k + 1 == size || (nodes && nodes[k + 1] != p.node);
    p.head = p.first || slot_of(at[p.boundary - 1], depth, stride) != p.slot;
    p.next = last ? uint32_t{1} << stride : slot_of(at[p.boundary + 1], depth, stride);
    bool tail = p.next != p.slot;
    p.child = !(p.head && tail && significant_bits(at[p.boundary]) <= depth + stride);
    p.leads = p.first && p.slot != 0;
    p.trails = p.child && tail && p.next > p.slot + 1;
    return p;
  }
};

template <class Number>
struct CountMatchEntries {
  MatchLevelInput<Number> level;
  STRIDE_HD MatchPlace operator()(uint64_t k) const {
    if (k == level.size) return {};  // so that the scan ends with the sum
    auto p = level.part(static_cast<uint32_t>(k));
    return {uint32_t{p.leads} + p.head + p.trails, p.child && p.head, p.child};
  }
};

template <class Number>
struct WriteMatchEntries {
  MatchLevelInput<Number> level;
  const MatchPlace* places;  // the scan of what CountMatchEntries returns; size + 1
  MatchBlock* blocks;        // of 0; null: a list level
  uint32_t* starts;
  uint16_t* slots;
  uint32_t* entries;
  // These take the boundaries of the level below, and the node of each.
  uint32_t* next_boundaries;
  uint32_t* next_nodes;

  STRIDE_HD void operator()(uint64_t k) const {
    auto p = level.part(static_cast<uint32_t>(k));
    MatchPlace place = places[k];
    if (starts && p.first) starts[p.node] = place.entries;
    if (starts && k + 1 == level.size) starts[p.node + 1] = places[k + 1].entries;
    uint32_t answer = level.answers[p.boundary];
    if (p.leads) put(p.node, 0, level.answers[p.boundary - 1], &place.entries);
    if (p.head) {
      put(p.node, p.slot, p.child ? match_child | place.children : answer, &place.entries);
    }
    if (p.trails) put(p.node, p.slot + 1, answer, &place.entries);
    if (p.child) {
      next_boundaries[place.inside] = p.boundary;
      next_nodes[place.inside] = p.head ? place.children : place.children - 1;
    }
  }

 private:
  STRIDE_HD void put(uint32_t node, uint32_t slot, uint32_t value, uint32_t* entry) const {
    if (blocks) {
      MatchBlock& block = blocks[node * blocks_of(level.stride) + slot / slots_of_block];
      uint32_t bit = slot % slots_of_block;
      set_bits(&block.bits[bit / 32], uint32_t{1} << bit % 32);
    } else {
      slots[*entry] = static_cast<uint16_t>(slot);
    }
    entries[(*entry)++] = value;
  }
};

// Entries as the image has them, of 3 bytes.
struct NarrowEntries {
  const uint32_t* entries;
  std::byte* out;
  STRIDE_HD void operator()(uint64_t i) const {
    uint32_t entry = narrow_entry(entries[i]);
    for (uint32_t k = 0; k < 3; ++k) out[3 * i + k] = static_cast<std::byte>(entry >> 8 * k);
  }
};

struct CountBlockBits {
  STRIDE_HD uint32_t operator()(const MatchBlock& block) const {
    return count_bits(block.bits[0]) + count_bits(block.bits[1]) + count_bits(block.bits[2]);
  }
};
// Every entry has a bit, in the same order.
struct RankBlocks {
  MatchBlock* blocks;
  const uint32_t* before;
  STRIDE_HD void operator()(uint64_t i) const { blocks[i].before = before[i] - 1; }
};

}  // namespace stride
