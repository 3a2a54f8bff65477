// Searches on a device: one thread a query.
//
// Keys of 4 or 8 bytes are found by interpolation. A *directory*, a direct table over the bits
// after those that all keys share, small enough for the second-level cache, gives the few ranks
// where a query can be, and the query's next bits where among these it should be. The memory sector
// of 32 bytes there is read and compared as a whole, then its neighbours. So most searches cost one
// access to memory. The directory is the root of the tree at a width that suits the device; where
// the tree has further levels, which it has where keys are far from even, searches go down the tree
// itself.
//
// All other keys go down the tree and are compared one by one (search_one.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/backend.h"
#include "gpu/search_one.h"
#include "gpu/tree_search.h"

namespace stride {

// What a search on the device needs of an index; all pointers are the device's.
struct DeviceIndex {
  PackedColumn keys;
  TreeRef tree;
  bool has_tree;
  // Of number columns without deeper levels; null: none.
  const uint32_t* directory;  // 2^directory_bits starts, and the number of keys
  uint32_t directory_bits;

  STRIDE_HD const TreeRef* tree_or_null() const { return has_tree ? &tree : nullptr; }
};

// A column of any layout.
struct DeviceByteColumn {
  PackedColumn column;
  STRIDE_HD uint64_t size() const { return column.size; }
  STRIDE_HD Bytes operator[](uint64_t rank) const { return column[rank]; }
};

inline constexpr uint32_t sector_bytes = 32;

template <uint32_t width>
struct StoredNumber;
template <>
struct StoredNumber<4> {
  using Type = uint32_t;
};
template <>
struct StoredNumber<8> {
  using Type = uint64_t;
};

// A column of numbers of 4 or 8 bytes, aligned to a sector.
template <uint32_t width>
struct DeviceNumberColumn {
  using Stored = typename StoredNumber<width>::Type;
  static constexpr uint32_t per_sector = sector_bytes / width;
  const Stored* data;
  uint32_t count;

  __device__ explicit DeviceNumberColumn(const PackedColumn& column)
      : data(reinterpret_cast<const Stored*>(column.data)),
        count(static_cast<uint32_t>(column.size)) {}
  __device__ uint64_t size() const { return count; }
  __device__ static uint64_t number(Stored stored) { return byte_swap(stored); }
  __device__ uint64_t operator[](uint64_t rank) const { return number(data[rank]); }

  struct Sector {
    Stored at[per_sector];
  };
  __device__ Sector sector(uint32_t first) const {
    static_assert(sizeof(Sector) == 2 * sizeof(uint4));
    Sector s;
    const uint4* from = reinterpret_cast<const uint4*>(data + first);
    reinterpret_cast<uint4*>(&s)[0] = __ldg(from);
    reinterpret_cast<uint4*>(&s)[1] = __ldg(from + 1);
    return s;
  }
};

// The search for one number in the sectors of an interval of ranks.
template <uint32_t width>
class SectorSearch {
 public:
  using Column = DeviceNumberColumn<width>;
  using Stored = typename Column::Stored;

  __device__ SectorSearch(const DeviceIndex& index, Stored stored)
      : keys_(index.keys), stored_(stored), number_(Column::number(stored)) {
    uint32_t used;
    if (index.directory) {
      uint32_t slot = bits_of(number_, index.tree.prefix_bits, index.directory_bits);
      used = index.tree.prefix_bits + index.directory_bits;
      ranks_ = {__ldg(index.directory + slot), __ldg(index.directory + slot + 1)};
    } else {
      struct UsedBits {
        uint32_t bits = 0;
        __device__ void visit(const LevelRef& level, uint32_t, uint32_t depth) {
          bits = depth + level.stride;
        }
      } path;
      ranks_ = {0, keys_.count};
      if (index.has_tree) ranks_ = descend(index.tree, NumberQuery{number_}, path);
      used = path.bits;
    }
    low_ = ranks_.first;
    high_ = ranks_.last;
    uint64_t rest = used > 63 ? 0 : bits_of(number_, used, 32);
    next_ = sector_of(low_ + static_cast<uint32_t>(rest * (high_ - low_) >> 32));
  }

  __device__ uint64_t number() const { return number_; }
  __device__ RankInterval leaf() const { return ranks_; }

  __device__ uint32_t find() {
    for (uint32_t round = 0; low_ < high_; ++round) {
      typename Column::Sector sector = keys_.sector(next_);
      uint32_t rank = Location::absent;
#pragma unroll
      for (uint32_t i = 0; i < Column::per_sector; ++i) {
        if (sector.at[i] == stored_) rank = next_ + i;
      }
      // What follows the last key in its sector may be anything.
      if (rank < keys_.count) return rank;
      narrow(sector, round);
    }
    return Location::absent;
  }

  // Of the leaf: the caller checks its edges.
  __device__ uint32_t lower_bound() {
    uint32_t rank = low_;
    for (uint32_t round = 0; low_ < high_; ++round) {
      typename Column::Sector sector = keys_.sector(next_);
      uint32_t smaller = 0;
#pragma unroll
      for (uint32_t i = 0; i < Column::per_sector; ++i) {
        smaller += Column::number(sector.at[i]) < number_ && next_ + i < keys_.count;
      }
      rank = next_ + smaller;
      narrow(sector, round);
    }
    return min(max(rank, ranks_.first), ranks_.last);
  }

 private:
  __device__ static uint32_t sector_of(uint32_t rank) {
    return rank / Column::per_sector * Column::per_sector;
  }

  // Leaves what lies beside the sector on the side where the query is: that sector's neighbour
  // first, and, where it is far, the middle.
  __device__ void narrow(const typename Column::Sector& sector, uint32_t round) {
    constexpr uint32_t neighbours = 3;
    uint32_t begin = next_, end = next_ + Column::per_sector;
    if (number_ < Column::number(sector.at[0])) {
      high_ = min(high_, begin);
      next_ = begin - Column::per_sector;
    } else if (end < high_ && number_ > Column::number(sector.at[Column::per_sector - 1])) {
      low_ = max(low_, end);
      next_ = end;
    } else {
      high_ = low_;
    }
    if (round >= neighbours && low_ < high_) next_ = sector_of(low_ + (high_ - low_) / 2);
  }

  Column keys_;
  Stored stored_;
  uint64_t number_;
  RankInterval ranks_;
  uint32_t low_, high_;  // where the query can still be
  uint32_t next_;        // the first rank of the sector to look at
};

template <uint32_t width>
__device__ uint32_t find_number(const DeviceIndex& index,
                                typename StoredNumber<width>::Type stored) {
  return SectorSearch<width>(index, stored).find();
}

template <uint32_t width>
__device__ uint32_t lower_bound_number(const DeviceIndex& index,
                                       typename StoredNumber<width>::Type stored) {
  SectorSearch<width> search(index, stored);
  uint32_t rank = search.lower_bound();
  RankInterval leaf = search.leaf();
  if (rank > leaf.first && rank < leaf.last) return rank;
  DeviceNumberColumn<width> keys(index.keys);
  if (is_lower_bound(keys, search.number(), rank, leaf)) return rank;
  return index.has_tree ? lower_bound_beside(index.tree, keys, search.number())
                        : lower_bound_within(keys, search.number(), {0, keys.count});
}

// What a batch of searches does with one query.
enum class SearchOp { find, lower_bound, upper_bound };

template <SearchOp op, uint32_t width>
__device__ uint32_t search_number(const DeviceIndex& index,
                                  typename StoredNumber<width>::Type stored) {
  if constexpr (op == SearchOp::find) {
    return find_number<width>(index, stored);
  } else {
    uint32_t rank = lower_bound_number<width>(index, stored);
    if constexpr (op == SearchOp::upper_bound) {
      DeviceNumberColumn<width> keys(index.keys);
      rank += rank < keys.count && keys.data[rank] == stored;
    }
    return rank;
  }
}

template <SearchOp op>
__device__ uint32_t search_bytes(const DeviceIndex& index, Bytes query) {
  DeviceByteColumn keys{index.keys};
  if constexpr (op == SearchOp::find) {
    return find_in(index.tree_or_null(), keys, query);
  } else {
    uint32_t rank = lower_bound_in(index.tree_or_null(), keys, query);
    if constexpr (op == SearchOp::upper_bound) {
      rank += rank < keys.size() && equal_keys(keys[rank], query);
    }
    return rank;
  }
}

// Whether searches of `queries` in a column may take numbers of this width.
inline bool are_numbers(const KeyColumn& queries, uint32_t width) {
  return queries.is_fixed() && queries.width == width &&
         reinterpret_cast<uintptr_t>(queries.data) % width == 0;
}
inline bool are_numbers(const PackedColumn& keys, uint32_t width) {
  return keys.fixed && keys.width == width &&
         reinterpret_cast<uintptr_t>(keys.data) % sector_bytes == 0;
}

__device__ inline uint64_t this_thread() { return blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; }

template <SearchOp op, uint32_t width>
__global__ void __launch_bounds__(256)
    search_numbers(const __grid_constant__ DeviceIndex index,
                   const typename StoredNumber<width>::Type* queries, uint64_t count,
                   uint32_t* out) {
  uint64_t i = this_thread();
  if (i >= count) return;
  __stcs(out + i, search_number<op, width>(index, __ldcs(queries + i)));
}

template <SearchOp op>
__global__ void __launch_bounds__(256)
    search_keys(const __grid_constant__ DeviceIndex index, KeyColumn queries, uint32_t* out) {
  uint64_t i = this_thread();
  if (i >= queries.size) return;
  out[i] = search_bytes<op>(index, queries[i]);
}

// The first of several indexes that holds a query.
template <class Find>
__device__ void find_first(uint32_t indexes, Location* out, const Find& find) {
  Location location{Location::absent, Location::absent};
  for (uint32_t number = 0; number < indexes; ++number) {
    uint32_t rank = find(number);
    if (rank == Location::absent) continue;
    location = {number, rank};
    break;
  }
  static_assert(sizeof(Location) == sizeof(uint64_t));
  __stcs(reinterpret_cast<unsigned long long*>(out),
         location.index | static_cast<unsigned long long>(location.rank) << 32);
}

template <uint32_t width>
__global__ void __launch_bounds__(256)
    find_numbers_in(const DeviceIndex* const* indexes, uint32_t index_count,
                    const typename StoredNumber<width>::Type* queries, uint64_t count,
                    Location* out) {
  uint64_t i = this_thread();
  if (i >= count) return;
  auto stored = __ldcs(queries + i);
  find_first(index_count, out + i,
             [&](uint32_t number) { return find_number<width>(*indexes[number], stored); });
}

__global__ inline void __launch_bounds__(256)
    find_keys_in(const DeviceIndex* const* indexes, uint32_t index_count, KeyColumn queries,
                 Location* out) {
  uint64_t i = this_thread();
  if (i >= queries.size) return;
  Bytes query = queries[i];
  find_first(index_count, out + i, [&](uint32_t number) {
    return search_bytes<SearchOp::find>(*indexes[number], query);
  });
}

__global__ inline void __launch_bounds__(256)
    find_prefixes(const __grid_constant__ DeviceIndex index, KeyColumn queries, RankInterval* out) {
  uint64_t i = this_thread();
  if (i >= queries.size) return;
  DeviceByteColumn keys{index.keys};
  Bytes query = queries[i];
  uint32_t first = lower_bound_in(index.tree_or_null(), keys, query);
  uint32_t last = lower_bound_in(index.tree_or_null(), keys, PrefixEnd{query});
  out[i] = {first, max(first, last)};
}

// The starts of a directory over `bits` bits after the shared ones: key i fills the slots after
// that of the key before, up to its own.
template <uint32_t width>
__global__ void fill_directory(PackedColumn column, uint32_t prefix_bits, uint32_t bits,
                               uint32_t* directory) {
  DeviceNumberColumn<width> keys(column);
  uint64_t i = this_thread();
  if (i > keys.count) return;
  uint64_t slot = i == keys.count ? uint64_t{1} << bits : bits_of(keys[i], prefix_bits, bits);
  uint64_t from = i == 0 ? 0 : uint64_t{bits_of(keys[i - 1], prefix_bits, bits)} + 1;
  for (uint64_t s = from; s <= slot; ++s) directory[s] = static_cast<uint32_t>(i);
}

}  // namespace stride
