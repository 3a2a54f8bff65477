// How a device applies a prepared route (gpu/scatter_add.h): as an exchange. All random accesses
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
// where is worked out once and takes 4 bytes a source. Targets with very many sources (hot) have
// lists of their own, which read S itself.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/scatter_add.h"

namespace stride {

inline constexpr uint32_t route_chunk_sources = 1 << 14;  // at most
// Sources of one slab that make a target hot.
inline constexpr uint32_t route_hot_sources = 1 << 11;
inline constexpr uint32_t route_part_sources = route_chunk_sources + route_hot_sources;  // at most
inline constexpr uint64_t route_slab_sources = 1 << 24;                                  // at most

struct RouteSlab {
  uint64_t first = 0;  // source
  uint32_t sources = 0;
  uint32_t chunk_sources = 0;  // but for the last
  uint32_t chunks = 0, parts = 0;
  uint32_t items = 0;  // sources that are exchanged

  // Of each chunk, `chunk_sources` places apart: its sources in the order of parts.
  std::vector<uint16_t> picks;
  // [chunk][part + 1]: where a part begins among them.
  std::vector<uint16_t> run_begin;
  // [chunk][part]: where that goes among the items.
  std::vector<uint32_t> run_to;

  // [part + 1]: first target, and first item.
  std::vector<uint64_t> part_target;
  std::vector<uint32_t> part_item;
  // Of each part's items: those of each target one after the other, as places in the part.
  std::vector<uint16_t> list;
  // [target]: where its items begin in the part's list. They end where the next target's begin.
  std::vector<uint16_t> list_begin;

  // Of each hot target, `begin` to the next one's in hot_sources, counted from `first`.
  struct Hot {
    uint64_t target;
    uint32_t begin;
  };
  std::vector<Hot> hot;
  std::vector<uint32_t> hot_sources;
};

// Whether an exchange is the best way there: neither fewer sources than targets, nor so few targets
// that copies of T do.
bool is_exchanged(uint64_t sources, uint64_t targets);

// targets: those of sources [first, first + n), n at most route_slab_sources; what is not below
// `limit` is left out. processors: of the device; chunks and parts come in multiples.
RouteSlab plan_slab(const Indexes& targets, uint64_t first, uint64_t n, uint64_t limit,
                    uint32_t processors);

}  // namespace stride
