// Samples a sorted key column (key_statistics.h), on host threads or a device.
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/key_bits.h"
#include "gpu/key_statistics.h"

namespace stride {

// The distances at which neighbours are looked at: 1 to 8, and then two in each doubling.
STRIDE_HD inline uint64_t sample_distance(uint32_t step, bool exact) {
  if (exact || step < 8) return step + uint64_t{1};
  uint32_t past = step - 8;
  return (past % 2 ? uint64_t{16} : uint64_t{12}) << past / 2;
}

inline uint32_t distances_for(uint64_t keys, bool exact) {
  uint32_t steps = 0;
  while (sample_distance(steps, exact) < keys) ++steps;
  return steps;
}

// One key of each of `samples` equal parts of the column, somewhere in it, so that no pattern of
// the keys goes in step with the sample.
STRIDE_HD inline uint64_t sample_rank(uint64_t sample, uint64_t samples, uint64_t keys) {
  uint64_t begin = sample * keys / samples, end = (sample + 1) * keys / samples;
  uint64_t x = (sample + 1) * 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;  // SplitMix64
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return begin + (x ^ x >> 31) % (end - begin);
}

template <uint32_t width>
STRIDE_HD uint32_t length_of_key(const NumberKeys<width>&, uint64_t) {
  return width;
}
STRIDE_HD inline uint32_t length_of_key(const ByteKeys& keys, uint64_t rank) {
  return static_cast<uint32_t>(keys[rank].size());
}

// What is written down of each sampled key, as one array of 32-bit words: 2 x distances of shared
// bits (before, then after), the length, and the head.
struct SampleShape {
  uint64_t keys;
  uint32_t samples;
  uint32_t distances;
  bool exact;

  STRIDE_HD uint32_t words() const { return 2 * distances + 1 + 2 * KeyStatistics::head_words; }
  // And one more at the end: the bits that all keys share.
  uint64_t all_words() const { return uint64_t{samples} * words() + 1; }
};

template <class Keys>
struct SampleKey {
  Keys keys;
  SampleShape shape;
  uint32_t* out;

  // One word, so that a device has as many threads as there are reads of memory to wait for.
  STRIDE_HD void operator()(uint64_t i) const {
    if (i == uint64_t{shape.samples} * shape.words()) {
      out[i] = prefix_bits();
      return;
    }
    auto word = static_cast<uint32_t>(i % shape.words());
    uint64_t rank = sample_rank(i / shape.words(), shape.samples, shape.keys);
    if (word < 2 * shape.distances) {
      bool after = word >= shape.distances;
      out[i] = shared(rank, sample_distance(after ? word - shape.distances : word, shape.exact),
                      after);
    } else if (word == 2 * shape.distances) {
      out[i] = length_of_key(keys, rank);
    } else {
      uint32_t part = word - 2 * shape.distances - 1;
      out[i] = keys.bits(rank, prefix_bits() + 32 * part, 32);
    }
  }

  STRIDE_HD uint32_t shared(uint64_t rank, uint64_t distance, bool after) const {
    if (after ? shape.keys - rank <= distance : rank < distance) return 0;
    return keys.shared(rank, after ? rank + distance : rank - distance);
  }
  STRIDE_HD uint32_t prefix_bits() const {
    uint32_t bits = shape.keys > 1 ? keys.shared(0, shape.keys - 1) : 0;
    return bits == same_bits ? 0 : bits;
  }
};

// Space: as in tree_build.h.
template <class Space, class Keys>
void sample_keys(Space& space, const PackedColumn& column, const Keys& keys,
                 const SampleOptions& options, KeyStatistics* statistics) {
  KeyStatistics& s = *statistics;
  s = {};
  s.keys = column.size;
  s.key_bytes = column.row_bytes();
  s.width = column.fixed ? column.width : 0;
  if (s.keys == 0) return;
  uint32_t asked = options.samples ? options.samples : default_samples(s.keys);
  SampleShape shape{s.keys, static_cast<uint32_t>(std::min<uint64_t>(s.keys, asked)),
                    distances_for(s.keys, options.exact), options.exact};
  if (options.exact) shape.samples = static_cast<uint32_t>(s.keys);
  uint64_t words = shape.all_words();
  auto sampled = space.template buffer<uint32_t>(words);
  thrust::for_each_n(space.policy(), thrust::counting_iterator<uint64_t>(0), words,
                     SampleKey<Keys>{keys, shape, sampled.data()});
  std::vector<uint32_t> host(words);
  space.copy_out(host.data(), sampled.data(), words * sizeof(uint32_t));
  s.prefix_bits = host.back();
  // Bits past those; 0 also where there is no such key.
  auto past = [&](uint32_t bits) {
    return bits == same_bits ? bits : bits - std::min(bits, s.prefix_bits);
  };

  for (uint32_t step = 0; step < shape.distances; ++step)
    s.distances.push_back(static_cast<uint32_t>(sample_distance(step, options.exact)));
  for (uint32_t i = 0; i < shape.samples; ++i) {
    const uint32_t* row = host.data() + uint64_t{i} * shape.words();
    s.ranks.push_back(static_cast<uint32_t>(sample_rank(i, shape.samples, s.keys)));
    for (uint32_t step = 0; step < shape.distances; ++step) s.before.push_back(past(*row++));
    for (uint32_t step = 0; step < shape.distances; ++step) s.after.push_back(past(*row++));
    s.lengths.push_back(*row++);
    for (uint32_t w = 0; w < KeyStatistics::head_words; ++w)
      s.heads.push_back(uint64_t{row[2 * w]} << 32 | row[2 * w + 1]);
  }
}

}  // namespace stride
