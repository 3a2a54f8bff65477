// The kernels of dense sets: a hash table of slots in front of vectors that lie by their ids.
#pragma once

#include "gpu/set/cuda_set_base.cuh"
#include "gpu/set/vector_layout.h"

namespace stride {

namespace {

// Vectors by dense ids, in chunks that never move.
struct StoreRef {
  static constexpr uint32_t most = GrowingChunks::most;
  uint32_t* chunks[most];
  uint64_t first;  // vectors of the first chunk
  uint32_t words;

  __device__ __forceinline__ uint32_t* at(uint64_t id) const {
    if (id < first) return chunks[0] + id * words;
    uint32_t chunk = GrowingChunks::chunk_of(id, first);
    return chunks[chunk] + (id - GrowingChunks::begin(chunk, first)) * words;
  }
};

struct DenseCounters {
  unsigned long long size;
  unsigned long long failed;
};

struct DenseRef {
  SlotLayout layout;
  uint64_t* slots;
  StoreRef store;
  VectorHash hash;
  DenseCounters* counters;
};

__device__ __forceinline__ uint64_t pair_of(uint2 x) { return uint64_t{x.y} << 32 | x.x; }

// Hashes and comparisons by pieces: of as many words as vectors are aligned to.
template <class Piece>
__device__ __forceinline__ uint64_t hash_of(const VectorHash& hash, const uint32_t* vector,
                                            uint32_t words, bool is_first) {
  uint64_t state = hash.begin(is_first);
  const auto* pieces = reinterpret_cast<const Piece*>(vector);
  if constexpr (sizeof(Piece) == 16) {
    for (uint32_t i = 0; i < words / 4; ++i) {
      uint4 x = pieces[i];
      state = VectorHash::add(state, pair_of({x.x, x.y}), is_first);
      state = VectorHash::add(state, pair_of({x.z, x.w}), is_first);
    }
  } else if constexpr (sizeof(Piece) == 8) {
    for (uint32_t i = 0; i < words / 2; ++i)
      state = VectorHash::add(state, pair_of(pieces[i]), is_first);
  } else {
    for (uint32_t i = 0; i < words; i += 2) {
      uint32_t high = i + 1 < words ? pieces[i + 1] : 0;
      state = VectorHash::add(state, pair_of({pieces[i], high}), is_first);
    }
  }
  return VectorHash::end(state, words);
}

__device__ __forceinline__ bool same(uint32_t a, uint32_t b) { return a == b; }
__device__ __forceinline__ bool same(uint2 a, uint2 b) { return a.x == b.x && a.y == b.y; }
__device__ __forceinline__ bool same(uint4 a, uint4 b) {
  return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
}

template <class Piece>
__device__ __forceinline__ bool equal(const uint32_t* a, const uint32_t* b, uint32_t words) {
  const auto* left = reinterpret_cast<const Piece*>(a);
  const auto* right = reinterpret_cast<const Piece*>(b);
  for (uint32_t i = 0; i < words / (sizeof(Piece) / 4); ++i)
    if (!same(left[i], right[i])) return false;
  return true;
}

// What a row of a batch found, until ids are known: a stored vector's id, an earlier row with the
// same vector, or a slot, which it took.
struct Found {
  static constexpr uint64_t is_id = uint64_t{1} << 63, is_row = uint64_t{1} << 62;
  static constexpr uint64_t nothing = UINT64_MAX;
  static constexpr uint64_t mask = is_row - 1;
};

// What the rows of a batch note. Bitmaps have a bit a row.
struct RowNotes {
  uint64_t* found;
  uint32_t* taken;      // the row took a slot
  uint32_t* lost;       // and an earlier row with the same vector took it from this one,
  uint32_t* successor;  // which is this: valid where lost
  uint32_t* ranks;      // how many rows before those of a word are new

  // New are the rows whose number stays in a slot.
  STRIDE_HD uint32_t news(uint64_t word) const { return taken[word] & ~lost[word]; }
  __device__ bool has_lost(uint64_t row) const { return lost[row / 32] >> row % 32 & 1; }
  __device__ uint64_t rank(uint64_t row) const {
    return ranks[row / 32] + __popc(news(row / 32) & ((1u << row % 32) - 1));
  }
};

// Each row finds its vector among those stored and those of other rows, or leaves its own number
// there; of equal ones the smallest stays.
template <class Piece>
__global__ void __launch_bounds__(block_threads)
    claim_rows(const __grid_constant__ DenseRef set, const uint32_t* vectors, uint64_t count,
               const __grid_constant__ RowNotes notes) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  bool failed = false, takes = false;
  if (row < count) {
    uint32_t words = set.store.words;
    const uint32_t* vector = vectors + row * words;
    uint64_t before = set.counters->size;
    uint64_t hash = hash_of<Piece>(set.hash, vector, words, true);
    uint64_t own = DenseEntry::of(hash, before + row), result = Found::nothing;
    BucketWalk walk(set.layout, hash);
    bool more = true;
    while (more) {
      for (uint32_t s = 0; more && s < set.layout.bucket_slots; s += 2) {
        uint64_t at = walk.slot() + s, seen[2];
        read_slots(set.slots + at, seen);
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
          if (!more) continue;
          if (seen[i] == 0) seen[i] = take_slot(set.slots + at + i, own);
          if (seen[i] == 0) {
            result = at + i;
            takes = true;
            more = false;
          } else if (DenseEntry::may_be(seen[i], hash)) {
            uint64_t number = DenseEntry::number(seen[i]);
            if (number < before) {
              if (!equal<Piece>(vector, set.store.at(number), words)) continue;
              result = Found::is_id | number;
            } else {
              if (!equal<Piece>(vector, vectors + (number - before) * words, words)) continue;
              if (before + row < number)
                number = DenseEntry::number(
                    atomicMin(reinterpret_cast<unsigned long long*>(set.slots + at + i), own));
              const uint64_t other = number - before;
              takes = row < other;
              result = takes ? at + i : Found::is_row | other;
              if (takes) {
                notes.successor[other] = static_cast<uint32_t>(row);
                atomicOr(notes.lost + other / 32, 1u << other % 32);
              }
            }
            more = false;
          }
        }
      }
      if (more) more = walk.next([&] { return hash_of<Piece>(set.hash, vector, words, false); });
    }
    notes.found[row] = result;
    failed = result == Found::nothing;
  }
  const uint32_t taken = __ballot_sync(full_warp, takes);
  if (threadIdx.x % 32 == 0 && row < count) notes.taken[row / 32] = taken;
  if (__syncthreads_or(failed)) count_true(failed, &set.counters->failed);
}

struct CountNews {
  RowNotes notes;
  STRIDE_HD uint32_t operator()(uint64_t i) const { return count_bits(notes.news(i)); }
};

template <class Piece>
__global__ void finish_rows(const __grid_constant__ DenseRef set, const uint32_t* vectors,
                            uint64_t count, const __grid_constant__ RowNotes notes, bool again,
                            uint64_t* ids, uint32_t* bits) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (row >= count) return;
  uint64_t at = notes.found[row], id = absent;
  if (at == Found::nothing) {
  } else if (at & Found::is_id) {
    id = at & Found::mask;
  } else {
    uint64_t owner = at & Found::is_row ? at & Found::mask : row;
    while (notes.has_lost(owner)) owner = notes.successor[owner];
    id = set.counters->size + notes.rank(owner);
    if (owner == row) {
      // The half of an entry that is its number.
      reinterpret_cast<uint32_t*>(set.slots + at)[0] = static_cast<uint32_t>(id) + 1;
      const auto* from = reinterpret_cast<const Piece*>(vectors + row * set.store.words);
      auto* to = reinterpret_cast<Piece*>(set.store.at(id));
      for (uint32_t i = 0; i < set.store.words / (sizeof(Piece) / 4); ++i) to[i] = from[i];
    }
  }
  if (ids) ids[row] = id;
  if (bits && row % 32 == 0) {
    const uint32_t news = notes.news(row / 32);
    bits[row / 32] = again ? bits[row / 32] | news : news;
  }
}

__global__ void add_news(DenseCounters* counters, const __grid_constant__ RowNotes notes,
                         uint64_t words) {
  counters->size += notes.ranks[words - 1] + __popc(notes.news(words - 1));
}

template <class Piece>
__global__ void __launch_bounds__(block_threads)
    find_rows(const __grid_constant__ DenseRef set, const uint32_t* vectors, uint64_t count,
              uint64_t* ids) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (row >= count) return;
  uint32_t words = set.store.words;
  const uint32_t* vector = vectors + row * words;
  uint64_t hash = hash_of<Piece>(set.hash, vector, words, true), id = absent;
  BucketWalk walk(set.layout, hash);
  bool more = true;
  while (more) {
    for (uint32_t s = 0; more && s < set.layout.bucket_slots; s += 2) {
      uint64_t seen[2];
      read_slots(set.slots + walk.slot() + s, seen);
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        if (!more) continue;
        if (seen[i] == 0) {
          more = false;
        } else if (DenseEntry::may_be(seen[i], hash) &&
                   equal<Piece>(vector, set.store.at(DenseEntry::number(seen[i])), words)) {
          id = DenseEntry::number(seen[i]);
          more = false;
        }
      }
    }
    if (more) more = walk.next([&] { return hash_of<Piece>(set.hash, vector, words, false); });
  }
  __stcs(ids + row, id);
}

template <class Piece>
__global__ void get_rows(const __grid_constant__ DenseRef set, const uint64_t* ids, uint64_t count,
                         uint32_t* vectors, unsigned long long* first_bad) {
  uint32_t pieces = set.store.words / (sizeof(Piece) / 4);
  uint64_t k = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (k >= count * pieces) return;
  uint64_t row = k / pieces, id = ids[row];
  if (id >= set.counters->size) {
    atomicMin(first_bad, static_cast<unsigned long long>(row));
    return;
  }
  reinterpret_cast<Piece*>(vectors)[k] =
      reinterpret_cast<const Piece*>(set.store.at(id))[k - row * pieces];
}

__global__ void __launch_bounds__(block_threads)
    count_absent(const uint64_t* ids, uint64_t count, DenseCounters* counters) {
  uint64_t row = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  count_true(row < count && ids[row] == absent, &counters->failed);
}

// All that is stored goes into another table.
template <class Piece>
__global__ void refill_slots(const __grid_constant__ DenseRef set, uint64_t count) {
  uint64_t id = blockIdx.x * uint64_t{block_threads} + threadIdx.x;
  if (id >= count) return;
  const uint32_t* vector = set.store.at(id);
  uint64_t hash = hash_of<Piece>(set.hash, vector, set.store.words, true);
  uint64_t entry = DenseEntry::of(hash, id);
  BucketWalk walk(set.layout, hash);
  do {
    for (uint32_t s = 0; s < set.layout.bucket_slots; ++s) {
      uint64_t* slot = set.slots + walk.slot() + s;
      if (__ldcg(slot) == 0 && take_slot(slot, entry) == 0) return;
    }
  } while (walk.next([&] { return hash_of<Piece>(set.hash, vector, set.store.words, false); }));
  atomicAdd(&set.counters->failed, 1ull);
}

}  // namespace

}  // namespace stride
