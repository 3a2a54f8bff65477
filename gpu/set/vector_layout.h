// Where a vector may be in a hash table, for host and device code alike.
//
// A table is buckets of a few slots, in *regions*: the first bits of a vector's hash choose its
// region and it lies nowhere else, so that threads that have regions of their own never meet. In
// the region one hash function after the other names a bucket. The bucket itself
// and its neighbours, which share a few cache lines with it, are tried for each. A vector lies in
// the first slot on that way that was empty when it came; nothing is ever removed, so that a search
// ends at an empty slot.
#pragma once

#include <cstdint>
#include <cstring>

#include "gpu/keys/key_bits.h"
#include "gpu/match/match_number.h"

namespace stride {

// All bits of the result depend on all of x; one to one. The finalizer of MurmurHash3 by A.
// Appleby, with the constants of D. Stafford's mix 13.
STRIDE_HD inline uint64_t mix_bits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// The high half of a product: a number below `range` from a number of 64 bits.
STRIDE_HD inline uint64_t scale(uint64_t x, uint64_t range) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(x, range);
#else
  return static_cast<uint64_t>(Wide{x} * range >> 64);
#endif
}

struct WideWords {
  Wide entry;
  STRIDE_HD uint32_t operator()(uint32_t i) const {
    return static_cast<uint32_t>(entry >> (32 * i));
  }
};

// Two independent hashes of a vector: which bucket first, and how further ones are chosen.
struct VectorHash {
  static constexpr uint64_t step = 0x9E3779B97F4A7C15ull, other = 0xD1B54A32D192ED03ull;
  uint64_t seed;

  template <class Entry>
  STRIDE_HD uint64_t first(Entry entry) const {
    if constexpr (sizeof entry > 8) {
      return first(WideWords{entry}, 4);
    } else {
      return mix_bits(entry ^ seed);
    }
  }
  template <class Entry>
  STRIDE_HD uint64_t second(Entry entry) const {
    if constexpr (sizeof entry > 8) {
      return second(WideWords{entry}, 4);
    } else {
      return mix_bits((entry + seed) * other + 1);
    }
  }

  // These hash the words that word(i) gives.
  template <class Word>
  STRIDE_HD uint64_t first(const Word& word, uint32_t words) const {
    return of_words(word, words, true);
  }
  template <class Word>
  STRIDE_HD uint64_t second(const Word& word, uint32_t words) const {
    return of_words(word, words, false);
  }

  // These hash pairs of neighbouring words, one after the other; the last of an odd number has a 0
  // beside it.
  STRIDE_HD uint64_t begin(bool is_first) const { return is_first ? seed : seed + other; }
  STRIDE_HD static uint64_t add(uint64_t state, uint64_t pair, bool is_first) {
    state = (state ^ pair) * (is_first ? step : other);
    return state ^ state >> 32;
  }
  STRIDE_HD static uint64_t end(uint64_t state, uint32_t words) { return mix_bits(state + words); }

 private:
  template <class Word>
  STRIDE_HD uint64_t of_words(const Word& word, uint32_t words, bool is_first) const {
    uint64_t state = begin(is_first);
    for (uint32_t i = 0; i < words; i += 2) {
      uint64_t high = i + 1 < words ? word(i + 1) : 0;
      state = add(state, high << 32 | word(i), is_first);
    }
    return end(state, words);
  }
};

struct SlotLayout {
  // Hash functions, after which the region is searched from its first bucket on.
  static constexpr uint32_t most_buckets_hashed = 256, most_buckets_swept = 4096;
  // Regions have no fewer slots, so that chance does not fill one long before the others.
  static constexpr uint64_t fewest_slots_of_region = 1 << 16;
  static constexpr uint32_t max_region_bits = 8;

  uint64_t region_buckets = 0;  // a multiple of the neighbours
  uint32_t region_bits = 0;
  uint32_t bucket_slots = 4;
  uint32_t neighbours = 4;  // a power of two

  // At least `slots` in all.
  static SlotLayout of(uint64_t slots, uint32_t bucket_slots, uint32_t neighbours) {
    SlotLayout layout;
    layout.bucket_slots = bucket_slots;
    layout.neighbours = neighbours;
    while (layout.region_bits < max_region_bits &&
           slots >> (layout.region_bits + 1) >= fewest_slots_of_region)
      ++layout.region_bits;
    uint64_t group = uint64_t{bucket_slots} * neighbours << layout.region_bits;
    layout.region_buckets = (slots + group - 1) / group * neighbours;
    return layout;
  }
  STRIDE_HD uint64_t slots() const { return (region_buckets << region_bits) * bucket_slots; }
  STRIDE_HD uint32_t region(uint64_t hash) const {
    return region_bits ? static_cast<uint32_t>(hash >> (64 - region_bits)) : 0;
  }
  // The first slot of the first bucket to be searched.
  STRIDE_HD uint64_t first_slot(uint64_t hash) const {
    return (region(hash) * region_buckets + scale(hash << region_bits, region_buckets)) *
           bucket_slots;
  }
};

// The buckets where a vector may be, one after the other.
//
//   BucketWalk walk(layout, hash);
//   do { ... slots [walk.slot(), walk.slot() + bucket_slots) ... } while (walk.next(second));
class BucketWalk {
 public:
  STRIDE_HD BucketWalk(const SlotLayout& layout, uint64_t hash)
      : layout_(layout), hash_(hash), region_(layout.region(hash) * layout.region_buckets) {
    go_to(hash << layout.region_bits);
  }
  STRIDE_HD uint64_t slot() const { return (region_ + bucket_) * layout_.bucket_slots; }
  // second(): the vector's second hash. False: there is no bucket left.
  template <class Second>
  STRIDE_HD bool next(const Second& second) {
    ++tried_;
    if (tried_ < SlotLayout::most_buckets_hashed) {
      uint32_t mask = layout_.neighbours - 1;
      if (tried_ & mask) {
        bucket_ = (bucket_ & ~uint64_t{mask}) | ((bucket_ + 1) & mask);
      } else {
        hash_ += second() | 1;
        go_to(hash_);
      }
      return true;
    }
    bucket_ = tried_ - SlotLayout::most_buckets_hashed;
    return bucket_ < layout_.region_buckets && bucket_ < SlotLayout::most_buckets_swept;
  }

 private:
  STRIDE_HD void go_to(uint64_t x) { bucket_ = scale(x, layout_.region_buckets); }

  const SlotLayout& layout_;
  uint64_t hash_;
  uint64_t region_;  // its first bucket
  uint64_t bucket_;  // of the region
  uint32_t tried_ = 0;
};

// Memory that grows in chunks without moving: the first holds `first` items, and each further one
// as many as all before it.
struct GrowingChunks {
  static constexpr uint32_t most = 34;

  STRIDE_HD static uint32_t chunk_of(uint64_t item, uint64_t first) {
    uint32_t chunk = 0;
    for (uint64_t end = first; item >= end; end *= 2) ++chunk;
    return chunk;
  }
  STRIDE_HD static uint64_t begin(uint32_t chunk, uint64_t first) {
    return chunk == 0 ? 0 : first << (chunk - 1);
  }
  STRIDE_HD static uint64_t size(uint32_t chunk, uint64_t first) {
    return chunk == 0 ? first : first << (chunk - 1);
  }
};

}  // namespace stride
