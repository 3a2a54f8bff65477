// How a device applies prepared targets (gpu/scatter_add.h): as an exchange. All random accesses
// are to memory that is as near as it can be.
//
// The sources of a *slab* are cut into *chunks* of neighbours, its targets into *parts* of
// neighbours with about as many sources each. First each chunk is read into a block's own memory
// and written out by parts:
//
//   S     | chunk 0      | chunk 1      | ...          in the order of sources
//   item  | part 0: of chunk 0, of chunk 1, ... | part 1: of chunk 0, ...    in the order of parts
//
// then each part is read into a block's own memory, and each of its targets adds up its sources,
// which a list names, in ascending order. Both passes read and write memory in stretches. What goes
// where is worked out once and takes about 5 bytes a source. Each chunk writes one sum for a target
// with many sources (a heavy hitter), and what remains is to add these up.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/scatter_add.h"

namespace stride {

inline constexpr uint32_t exchange_chunk_sources = 1 << 14;  // at most
// More sources of one slab than this make a target a heavy hitter.
inline constexpr uint32_t heavy_hitter_sources = 1 << 8;
inline constexpr uint32_t exchange_part_sources =
    exchange_chunk_sources + heavy_hitter_sources;          // at most
inline constexpr uint32_t exchange_part_targets = 1 << 12;  // at most
// Sources that half a warp takes to a part at once, at most; to a heavy hitter it takes a chunk's.
inline constexpr uint32_t exchange_piece_sources = 64;
// A thread takes so many at a time: pieces are filled up to a multiple.
inline constexpr uint32_t exchange_quad = 4;
// Targets that add up their sources together, in step.
inline constexpr uint32_t exchange_group_targets = 32;
inline constexpr uint32_t no_exchange_target = UINT32_MAX;

struct ExchangeSlab {
  uint64_t first = 0;  // source
  uint32_t sources = 0;
  uint32_t chunk_sources = 0;  // but for the last
  uint32_t chunks = 0, parts = 0;
  uint32_t items = 0;  // sources that are exchanged, and what fills up

  // Each chunk has its sources here in the order of parts, and then those of heavy hitters.
  std::vector<uint16_t> picks;
  // Pieces of picks that go to one stretch of the items, or that are added up.
  struct Piece {
    uint16_t begin;  // among the chunk's picks
    uint16_t count;  // a multiple of exchange_quad, or of what is added up
    uint32_t to;     // item, a multiple of exchange_quad; from `items` on: a sum
  };
  std::vector<Piece> pieces;
  std::vector<uint32_t> chunk_piece;  // [chunk + 1]
  std::vector<uint32_t> chunk_pick;   // [chunk + 1]: multiples of 8

  std::vector<uint32_t> part_target;  // [part + 1]: first target
  std::vector<uint32_t> part_item;    // [part + 1]: first item
  std::vector<uint32_t> part_group;   // [part + 1]: first group
  // Targets of a part that have sources in it, by falling numbers of sources, in groups; the last
  // group is filled up with no_exchange_target.
  std::vector<uint32_t> group_targets;
  // [group + 1]: where its list begins. A list has, for each step, what each target adds: a place
  // among the part's items, or, past a target's last one, the place behind them all. A part's lists
  // begin at a multiple of 8.
  std::vector<uint32_t> group_list;
  std::vector<uint16_t> list;
  // No chunk or part has more than these.
  uint32_t most_picks = 0, max_items = 0, most_list = 0, most_targets = 0;

  // Heavy hitters. Their sums, one for each chunk that has any of their sources, lie behind the
  // items, one target's after the other's.
  struct HeavyHitter {
    uint64_t target;
    uint32_t begin;  // the first of its sums
  };
  std::vector<HeavyHitter> heavy_hitters;  // and one more, where the last one's sums end
  uint32_t heavy_hitter_count() const { return static_cast<uint32_t>(heavy_hitters.size() - 1); }
  uint32_t heavy_hitter_sums() const { return heavy_hitters.back().begin - items; }
};

// Whether an exchange is the best way there: neither fewer sources than targets, nor so few targets
// that copies of T do.
bool is_exchanged(uint64_t sources, uint64_t targets);

// Sources of a slab at most: fewer make longer pieces, more spare looks at a large T.
uint64_t exchange_slab_sources(uint64_t targets);

// targets: those of sources [first, first + n), n at most exchange_slab_sources(limit); what is not
// below `limit` is left out. processors: of the device; chunks and parts come in multiples.
ExchangeSlab plan_slab(const Indexes& targets, uint64_t first, uint64_t n, uint64_t limit,
                       uint32_t processors);

}  // namespace stride
