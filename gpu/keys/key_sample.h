// Samples a sorted key column (key_statistics.h), on host threads or a device.
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/key_statistics.h"
#include "gpu/keys/key_bits.h"
#include "storage/column.h"

namespace stride {

// The distances at which neighbours are looked at first: 1 to 8, and then two in each doubling.
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

// Between two of them that differ in more bits than this, others are looked at: halfway, and so on.
inline constexpr uint32_t max_bits_at_once = 6;
inline constexpr uint32_t max_halvings = 24;
inline constexpr uint32_t max_further_points = 96;  // of a side of a sample

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

// How many bits two keys share that share `prefix` bits.
template <uint32_t width>
STRIDE_HD uint32_t shared_past(const NumberKeys<width>& keys, uint64_t i, uint64_t j, uint32_t) {
  return keys.shared(i, j);
}
STRIDE_HD inline uint32_t shared_past(const ByteKeys& keys, uint64_t i, uint64_t j,
                                      uint32_t prefix) {
  Bytes a = keys[i], b = keys[j];
  uint64_t skipped = prefix / 8, shorter = a.size() < b.size() ? a.size() : b.size();
  if (skipped > shorter) skipped = shorter;
  uint32_t bits = shared_bits(a.subspan(skipped), b.subspan(skipped));
  return bits == same_bits ? bits : bits + static_cast<uint32_t>(skipped) * 8;
}

// Where what is written down of sampled keys lies, as 32-bit words: first the length and the head
// of each, then how many points each side of each has, and the bits that all keys share; then, for
// all sides, their first points, a distance and the bits each, then their second ones, and so on,
// so that those which no side has come last and need not be copied.
struct SampleShape {
  uint64_t keys;
  uint32_t samples;
  uint32_t steps;
  bool exact;

  static constexpr uint32_t head_words = 1 + 2 * KeyStatistics::head_words;

  STRIDE_HD uint32_t points() const { return steps + (exact ? 0 : max_further_points); }
  STRIDE_HD uint64_t sides() const { return 2 * uint64_t{samples}; }
  STRIDE_HD uint64_t head_of(uint64_t sample) const { return sample * head_words; }
  STRIDE_HD uint64_t count_of(uint64_t side) const { return head_of(samples) + side; }
  STRIDE_HD uint64_t prefix() const { return count_of(sides()); }
  STRIDE_HD uint64_t point_of(uint64_t side, uint64_t point) const {
    return prefix() + 1 + 2 * (point * sides() + side);
  }
  uint64_t words_with(uint64_t most_points) const { return point_of(0, most_points); }
};

// One side of a sampled key, or its head, of every so many-th call: threads that go in step, as
// those of a warp, would wait for each other.
template <class Keys, uint64_t one_of>
struct SampleKey {
  static constexpr uint64_t parts = 3;
  Keys keys;
  SampleShape shape;
  uint32_t* out;

  STRIDE_HD void operator()(uint64_t call) const {
    if (call % one_of) return;
    const uint64_t i = call / one_of, sample = i / parts, part = i % parts;
    const uint64_t rank = sample_rank(sample, shape.samples, shape.keys);
    const uint32_t prefix = prefix_bits();
    if (part < 2) return look(rank, part == 1, prefix, 2 * sample + part);
    uint32_t* to = out + shape.head_of(sample);
    *to++ = length_of_key(keys, rank);
    for (uint32_t w = 0; w < 2 * KeyStatistics::head_words; ++w)
      *to++ = keys.bits(rank, prefix + 32 * w, 32);
    if (sample == 0) out[shape.prefix()] = prefix;
  }

 private:
  struct Point {
    uint32_t distance, bits;
  };
  struct Range {
    Point near, far;
    uint32_t halvings;
  };

  STRIDE_HD void look(uint64_t rank, bool after, uint32_t prefix, uint64_t side) const {
    const uint64_t most = after ? shape.keys - 1 - rank : rank;
    uint32_t count = 0, further = 0;
    uint32_t last_bits = 0, bits_before = 0;  // of the last two points
    auto bits_at = [&](uint64_t distance) {
      uint32_t bits = shared_past(keys, rank, after ? rank + distance : rank - distance, prefix);
      return bits == same_bits ? bits : bits - prefix;
    };
    auto put = [&](Point point) {
      if (count > 0 && last_bits == 0) return;  // the first without shared bits is enough
      // Only the first and the last of neighbours that share the same bits stay.
      if (count > 1 && last_bits == point.bits && bits_before == point.bits) --count;
      uint32_t* to = out + shape.point_of(side, count++);
      to[0] = point.distance;
      to[1] = point.bits;
      bits_before = last_bits;
      last_bits = point.bits;
    };
    Point last{0, 0};
    for (uint32_t step = 0; step < shape.steps; ++step) {
      uint64_t distance = sample_distance(step, shape.exact);
      if (distance > most) distance = most;
      if (distance <= last.distance) break;
      Point point{static_cast<uint32_t>(distance), bits_at(distance)};
      // Depth first, the nearer half first: a stack of one range for each halving.
      Range stack[max_halvings + 1];
      uint32_t depth = 0;
      stack[depth++] = {last.distance ? last : point, point, max_halvings};
      while (depth > 0) {
        Range range = stack[--depth];
        bool fine = range.near.bits - range.far.bits <= max_bits_at_once ||
                    range.far.distance - range.near.distance <= 1 || range.halvings == 0 ||
                    further >= max_further_points || shape.exact;
        if (fine) {
          put(range.far);
          continue;
        }
        ++further;
        uint32_t middle = range.near.distance + (range.far.distance - range.near.distance) / 2;
        Point between{middle, bits_at(middle)};
        stack[depth++] = {between, range.far, range.halvings - 1};
        stack[depth++] = {range.near, between, range.halvings - 1};
      }
      last = point;
      if (point.bits == 0) break;
    }
    out[shape.count_of(side)] = count;
  }

  STRIDE_HD uint32_t prefix_bits() const {
    uint32_t bits = shape.keys > 1 ? keys.shared(0, shape.keys - 1) : 0;
    return bits == same_bits ? 0 : bits;
  }
};

// Takes what is written down of sampled keys as statistics, whose sizes are there already.
inline void read_sample(const SampleShape& shape, const BulkVector<uint32_t>& words,
                        KeyStatistics* statistics) {
  KeyStatistics& s = *statistics;
  s.prefix_bits = words[shape.prefix()];
  s.first.push_back(0);
  for (uint32_t i = 0; i < shape.samples; ++i) {
    const uint32_t* head = words.data() + shape.head_of(i);
    s.ranks.push_back(static_cast<uint32_t>(sample_rank(i, shape.samples, s.keys)));
    s.lengths.push_back(*head++);
    for (uint32_t w = 0; w < KeyStatistics::head_words; ++w, head += 2)
      s.heads.push_back(uint64_t{head[0]} << 32 | head[1]);
    for (uint64_t side = 2 * uint64_t{i}; side < 2 * uint64_t{i} + 2; ++side) {
      for (uint32_t p = 0; p < words[shape.count_of(side)]; ++p) {
        const uint32_t* point = words.data() + shape.point_of(side, p);
        s.distances.push_back(point[0]);
        s.shared.push_back(point[1]);
      }
      s.first.push_back(static_cast<uint32_t>(s.distances.size()));
    }
  }
}

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
  auto sampled = space.template buffer<uint32_t>(shape.words_with(shape.points()));
  using Sample = SampleKey<Keys, Space::threads_in_step>;
  thrust::for_each_n(space.policy(), thrust::counting_iterator<uint64_t>(0),
                     shape.samples * Sample::parts * Space::threads_in_step,
                     Sample{keys, shape, sampled.data()});
  BulkVector<uint32_t> host(shape.words_with(0));
  space.copy_out(host.data(), sampled.data(), host.size() * sizeof(uint32_t));
  const auto counts = host.begin() + static_cast<ptrdiff_t>(shape.count_of(0));
  const uint32_t most = *std::max_element(counts, counts + static_cast<ptrdiff_t>(shape.sides()));
  const uint64_t read = host.size();
  host.resize(shape.words_with(most));
  space.copy_out(host.data() + read, sampled.data() + read, (host.size() - read) * sizeof host[0]);
  read_sample(shape, host, statistics);
}

}  // namespace stride
