// Random numbers of which each is found alone, from its place and a seed: large columns are made on
// all cores, and are the same for any number of threads.
#pragma once

#include <bit>
#include <cstdint>

namespace stride::benchmark {

// Word i of the stream of a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), whose state is a
// counter.
inline uint64_t random_word(uint64_t seed, uint64_t i) {
  uint64_t word = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ word >> 27) * 0x94D049BB133111EBull;
  return word ^ word >> 31;
}

// One to one, and with other constants than the sets' own hashes. The finalizer of MurmurHash3 by
// A. Appleby.
inline uint64_t scramble(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ull;
  return x ^ x >> 33;
}
inline uint32_t scramble32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return x ^ x >> 16;
}

// Random bits as a number below `range`, and as one from 0 to 1 (left out).
inline uint64_t below(uint64_t bits, uint64_t range) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{bits} * range >> 64);
}
inline double share_of_one(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// A random order of the numbers below n, of which each is found alone: a Feistel network over the
// next even number of bits, walked until it gives a number below n.
class RandomOrder {
 public:
  RandomOrder(uint64_t n, uint64_t seed) : n_(n) {
    half_bits_ = (static_cast<uint32_t>(std::bit_width(n)) + 1) / 2;
    for (uint64_t i = 0; i < 4; ++i) keys_[i] = scramble(seed * 4 + i + 1);
  }
  uint64_t operator[](uint64_t i) const {
    uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    do {
      uint64_t left = i >> half_bits_, right = i & mask;
      for (uint64_t key : keys_) {
        uint64_t next = left ^ (scramble(right ^ key) & mask);
        left = right;
        right = next;
      }
      i = left << half_bits_ | right;
    } while (i >= n_);
    return i;
  }

 private:
  uint64_t n_;
  uint32_t half_bits_;
  uint64_t keys_[4];
};

}  // namespace stride::benchmark
