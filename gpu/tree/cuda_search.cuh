// Searches on a device: one thread a query.
//
// A search goes down the tree to a leaf, a few ranks where its key can be, and there compares
// *tails*: of each key 8 bytes from about where the way to its leaf ended, in a column of their
// own. (A column of keys of 4 or 8 bytes is its own.) The query's next bits tell where in the leaf
// it should be, as if the leaf's keys were spread evenly (interpolation). The memory sector of 32
// bytes there is read and compared as a whole, then its neighbours. Where a tail is equal the whole
// key is compared once, unless the way down and the tail have seen all of it.
//
// Where the tree has no levels below the root, for its keys are spread evenly, a *directory* takes
// its place: a root of a width that suits the device, so small that it stays in the second-level
// cache. Then a search of numbers costs one access to memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/tree/cuda_index.h"
#include "gpu/tree/device_index.cuh"
#include "gpu/tree/search_one.h"
#include "gpu/tree/tree_search.h"
#include "gpu/tree_index.h"
#include "storage/column.h"

namespace stride {

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
      : DeviceNumberColumn(reinterpret_cast<const Stored*>(column.data), column.size) {}
  __device__ DeviceNumberColumn(const Stored* numbers, uint64_t size)
      : data(numbers), count(static_cast<uint32_t>(size)) {}
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

// The search for one number in the sectors of an interval of ranks, in which the numbers ascend.
// What lies beside the interval may be anything.
template <uint32_t width>
class SectorSearch {
 public:
  using Column = DeviceNumberColumn<width>;
  using Stored = typename Column::Stored;

  // guess_bits: the first of the query that the way to the leaf has not used.
  __device__ SectorSearch(const Column& keys, RankInterval ranks, Stored stored,
                          uint32_t guess_bits)
      : keys_(keys),
        stored_(stored),
        number_(Column::number(stored)),
        low_(ranks.first),
        high_(ranks.last),
        next_(sector_of(low_ + share_of(high_ - low_, guess_bits))) {}

  __device__ uint32_t find() {
    for (uint32_t round = 0; low_ < high_; ++round) {
      typename Column::Sector sector = keys_.sector(next_);
      uint32_t rank = Location::absent;
      // Backwards, for what lies behind the last key may be anything, even equal.
#pragma unroll
      for (uint32_t i = Column::per_sector; i-- > 0;) {
        if (sector.at[i] == stored_) rank = next_ + i;
      }
      if (rank < high_) return rank;
      narrow(sector, round);
    }
    return Location::absent;
  }

  // The first rank in [first, last) whose number is not smaller, or `last`.
  __device__ uint32_t lower_bound() {
    uint32_t first = low_, last = high_, rank = low_;
    for (uint32_t round = 0; low_ < high_; ++round) {
      typename Column::Sector sector = keys_.sector(next_);
      uint32_t smaller = 0;
#pragma unroll
      for (uint32_t i = 0; i < Column::per_sector; ++i) {
        uint32_t at = next_ + i;
        smaller += at < low_ || (at < high_ && Column::number(sector.at[i]) < number_);
      }
      rank = next_ + smaller;
      narrow(sector, round);
    }
    return min(max(rank, first), last);
  }

 private:
  // A 32-bit fraction of a number.
  __device__ static uint32_t share_of(uint32_t whole, uint32_t fraction) {
    return static_cast<uint32_t>(uint64_t{whole} * fraction >> 32);
  }
  __device__ static uint32_t sector_of(uint32_t rank) {
    return rank / Column::per_sector * Column::per_sector;
  }

  // Leaves what lies beside the sector on the side where the query is: that sector's neighbour
  // first, and, where it is far, the middle. Numbers equal to the query may lie before it.
  __device__ void narrow(const typename Column::Sector& sector, uint32_t round) {
    constexpr uint32_t neighbours = 3;
    uint32_t begin = next_, end = next_ + Column::per_sector;
    if (begin > low_ && number_ <= Column::number(sector.at[0])) {
      high_ = begin;
      next_ = begin - Column::per_sector;
    } else if (high_ - next_ > Column::per_sector &&
               number_ > Column::number(sector.at[Column::per_sector - 1])) {
      low_ = next_ = end;
    } else {
      high_ = low_;
    }
    if (round >= neighbours && low_ < high_) next_ = sector_of(low_ + (high_ - low_) / 2);
  }

  Column keys_;
  Stored stored_;
  uint64_t number_;
  uint32_t low_, high_;  // where the query can still be
  uint32_t next_;        // the first rank of the sector to look at
};

// The bits of a number from `used` on, as a guess.
__device__ inline uint32_t bits_after(uint64_t number, uint32_t used) {
  return used > 63 ? 0 : bits_of(number, used, 32);
}

template <uint32_t width>
__device__ uint32_t find_number(const DeviceIndex& index,
                                typename StoredNumber<width>::Type stored) {
  DeviceNumberColumn<width> keys(index.keys);
  uint64_t number = keys.number(stored);
  DeviceLeaf leaf = leaf_of(index, NumberQuery{number});
  return SectorSearch<width>(keys, leaf.ranks, stored, bits_after(number, leaf.used_bits)).find();
}

template <uint32_t width>
__device__ uint32_t lower_bound_number(const DeviceIndex& index,
                                       typename StoredNumber<width>::Type stored) {
  DeviceNumberColumn<width> keys(index.keys);
  uint64_t number = keys.number(stored);
  DeviceLeaf leaf = leaf_of(index, NumberQuery{number});
  SectorSearch<width> search(keys, leaf.ranks, stored, bits_after(number, leaf.used_bits));
  uint32_t rank = search.lower_bound();
  if (rank > leaf.ranks.first && rank < leaf.ranks.last) return rank;
  if (is_lower_bound(keys, number, rank, leaf.ranks)) return rank;
  return index.has_tree ? lower_bound_beside(index.tree, keys, number)
                        : lower_bound_within(keys, number, {0, keys.count});
}

// The length of a key, without the offset of its group where deltas will do.
__device__ inline uint64_t length_of(const PackedColumn& keys, uint32_t rank) {
  if (keys.fixed) return keys.width;
  const PackedOffsets& offsets = keys.offsets;
  bool last_of_group = (rank + 1) % (1u << PackedOffsets::group_bits) == 0;
  if (offsets.delta_width != 2 || last_of_group) return offsets[rank + 1] - offsets[rank];
  const auto* deltas = static_cast<const uint16_t*>(offsets.deltas);
  return static_cast<uint64_t>(deltas[rank + 1]) - deltas[rank];
}

// The search for a key of any width among the tails of its leaf.
class TailSearch {
 public:
  __device__ TailSearch(const DeviceIndex& index, Bytes query)
      : index_(index),
        query_(query),
        keys_{index.keys},
        leaf_(leaf_of(index, ByteQuery(query.data(), query.size()))) {}

  __device__ uint32_t find() {
    if (leaf_.ranks.first == leaf_.ranks.last) return Location::absent;
    RankInterval left = equal_tails(lower_bound_of_tail());
    if (left.first == left.last) return Location::absent;
    if (left.last - left.first > 1) left.first = lower_bound_within(keys_, query_, left);
    return left.first < left.last && equals(left.first) ? left.first : Location::absent;
  }

  __device__ uint32_t lower_bound() {
    RankInterval ranks = leaf_.ranks;
    uint32_t rank = ranks.first;
    if (ranks.first < ranks.last) {
      if (!belongs()) return beside();
      rank = lower_bound_within(keys_, query_, equal_tails(lower_bound_of_tail()));
    }
    return is_lower_bound(keys_, query_, rank, ranks) ? rank : beside();
  }

 private:
  static constexpr uint32_t tail_bytes = 8;

  __device__ uint32_t lower_bound_of_tail() {
    uint32_t at = leaf_.tail();
    uint64_t tail = slice8(query_.data(), query_.size(), at);
    stored_ = byte_swap(tail);
    DeviceNumberColumn<8> tails(index_.tails, index_.keys.size);
    return SectorSearch<8>(tails, leaf_.ranks, stored_, bits_after(tail, leaf_.used_bits - at * 8))
        .lower_bound();
  }

  // The ranks from `rank` on whose tails are the query's.
  __device__ RankInterval equal_tails(uint32_t rank) const {
    RankInterval equal{rank, rank};
    for (uint32_t step = 1; equal.last < leaf_.ranks.last; step *= 2) {
      uint32_t at = equal.last + min(step, leaf_.ranks.last - equal.last) - 1;
      if (index_.tails[at] == stored_) {
        equal.last = at + 1;
        continue;
      }
      // The end is in [last, at].
      while (equal.last < at) {
        uint32_t middle = equal.last + (at - equal.last) / 2;
        if (index_.tails[middle] == stored_) {
          equal.last = middle + 1;
        } else {
          at = middle;
        }
      }
      break;
    }
    return equal;
  }

  // Whether a key whose tail is the query's is the query.
  __device__ bool equals(uint32_t rank) const {
    if (leaf_.is_sure_before_tail() && query_.size() <= leaf_.tail() + tail_bytes) {
      return length_of(index_.keys, rank) == query_.size();
    }
    return equal_keys(keys_[rank], query_);
  }

  // Whether the query begins with the bytes that the keys of its leaf share before their tails.
  __device__ bool belongs() const {
    return leaf_.is_sure_before_tail() ||
           shared_bits(query_, keys_[leaf_.ranks.first]) >= leaf_.tail() * 8;
  }

  __device__ uint32_t beside() const {
    return index_.has_tree
               ? lower_bound_beside(index_.tree, keys_, query_)
               : lower_bound_within(keys_, query_, {0, static_cast<uint32_t>(keys_.size())});
  }

  const DeviceIndex& index_;
  Bytes query_;
  DeviceByteColumn keys_;
  DeviceLeaf leaf_;
  uint64_t stored_ = 0;  // the query's tail
};

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

__device__ inline uint32_t find_bytes(const DeviceIndex& index, Bytes query) {
  if (index.tails) return TailSearch(index, query).find();
  DeviceByteColumn keys{index.keys};
  return find_in(index.tree_or_null(), keys, query);
}

__device__ inline uint32_t lower_bound_bytes(const DeviceIndex& index, Bytes query) {
  if (index.tails) return TailSearch(index, query).lower_bound();
  DeviceByteColumn keys{index.keys};
  return lower_bound_in(index.tree_or_null(), keys, query);
}

template <SearchOp op>
__device__ uint32_t search_bytes(const DeviceIndex& index, Bytes query) {
  if constexpr (op == SearchOp::find) {
    return find_bytes(index, query);
  } else {
    uint32_t rank = lower_bound_bytes(index, query);
    if constexpr (op == SearchOp::upper_bound) {
      DeviceByteColumn keys{index.keys};
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

// Searches for numbers, one thread a query (gpu/device/cuda_pieces.cuh).
template <SearchOp op, uint32_t width>
struct DeviceNumberSearch {
  using Query = typename StoredNumber<width>::Type;
  DeviceIndex index;
  const Query* queries;
  uint32_t* out;

  __device__ Query load(uint64_t i) const { return __ldcs(queries + i); }
  __device__ void answer(uint64_t i, Query query) const {
    __stcs(out + i, search_number<op, width>(index, query));
  }
};

template <SearchOp op>
__global__ void __launch_bounds__(256)
    search_keys(const DeviceIndex* index, KeyColumn queries, uint32_t* out) {
  uint64_t i = this_thread();
  if (i >= queries.size) return;
  out[i] = search_bytes<op>(*index, queries[i]);
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

// The same in several indexes.
template <uint32_t width>
struct DeviceNumberSearchIn {
  using Query = typename StoredNumber<width>::Type;
  DeviceIndexes indexes;
  const Query* queries;
  Location* out;

  __device__ Query load(uint64_t i) const { return __ldcs(queries + i); }
  __device__ void answer(uint64_t i, Query query) const {
    find_first(indexes.count, out + i,
               [&](uint32_t number) { return find_number<width>(indexes[number], query); });
  }
};

__global__ inline void __launch_bounds__(256)
    find_keys_in(const __grid_constant__ DeviceIndexes indexes, KeyColumn queries, Location* out) {
  uint64_t i = this_thread();
  if (i >= queries.size) return;
  Bytes query = queries[i];
  find_first(indexes.count, out + i,
             [&](uint32_t number) { return find_bytes(indexes[number], query); });
}

__global__ inline void __launch_bounds__(256)
    find_prefixes(const DeviceIndex* index_pointer, KeyColumn queries, RankInterval* out) {
  uint64_t i = this_thread();
  if (i >= queries.size) return;
  const DeviceIndex& index = *index_pointer;
  DeviceByteColumn keys{index.keys};
  Bytes query = queries[i];
  uint32_t first = lower_bound_bytes(index, query);
  uint32_t last = lower_bound_in(index.tree_or_null(), keys, PrefixEnd{query});
  out[i] = {first, max(first, last)};
}

// Marks the starts of a directory, of bits after the shared ones: where the first key of a slot is,
// and the end. Those in between take the next one's (least_behind.h).
template <class Keys>
__global__ void mark_directory(Keys keys, uint32_t count, uint32_t prefix_bits, uint32_t bits,
                               uint32_t* directory) {
  uint64_t i = this_thread();
  if (i > count) return;
  const uint64_t slot = i == count ? uint64_t{1} << bits : keys.bits(i, prefix_bits, bits);
  const bool is_first = i == 0 || i == count || keys.bits(i - 1, prefix_bits, bits) != slot;
  if (is_first) directory[slot] = static_cast<uint32_t>(i);
}

// A directory of fewer bits than the root has: every so many of its starts.
__global__ inline void thin_out(const uint32_t* starts, uint32_t shift, uint64_t count,
                                uint32_t* directory) {
  uint64_t i = this_thread();
  if (i < count) directory[i] = starts[i << shift];
}

// The entries of a level; next_depths: of the nodes of the next one, or null.
__global__ inline void fill_entries(LevelRef level, uint32_t starts, uint32_t leaf_capacity,
                                    const uint32_t* next_depths, DeviceEntry* entries) {
  uint64_t i = this_thread();
  if (i >= starts) return;
  uint32_t first = level.starts[i], last = i + 1 < starts ? level.starts[i + 1] : first;
  bool large = level.children && last > first && last - first > leaf_capacity;
  uint32_t child = large ? child_of(level, static_cast<uint32_t>(i)) : no_node;
  entries[i] = {first, last, child, child == no_node ? 0 : next_depths[child]};
}

__global__ inline void fill_tails(const __grid_constant__ DeviceIndex index, uint64_t* tails) {
  uint64_t i = this_thread();
  if (i >= index.keys.size) return;
  Bytes key = index.keys[i];
  uint32_t at = leaf_of(index, ByteQuery(key.data(), key.size())).tail();
  tails[i] = byte_swap(slice8(key.data(), key.size(), at));
}

}  // namespace stride
