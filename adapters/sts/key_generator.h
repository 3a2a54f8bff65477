// The keys of the STS DatabaseBenchmark workload, and how they are stored.
//
//   SemiRandomGenerator keys(1, 2, 3, 0.5);  // half of the keys continue a run
//   std::byte stored[kKeyBytes];
//   encode_key(keys.next(), stored);
//   decode_key(stored);
//
// Source of the rule: SemiRandomGenerator and CoinTossGenerator of STSSoft/STS.General, which seed
// themselves from the clock; of the encoding: its LevelDB adapter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "adapters/sts/dotnet_random.h"

namespace stride {

constexpr size_t kKeyBytes = 8;

// Stores `key` so that memcmp orders as int64 does: big-endian with the sign bit flipped.
//   -2 -> 7f ff ff ff ff ff ff fe     1 -> 80 00 00 00 00 00 00 01
void encode_key(int64_t key, std::byte out[kKeyBytes]);
int64_t decode_key(const std::byte in[kKeyBytes]);

// Runs of consecutive keys that start at random places. Not thread-safe.
//
// Starts at Random1(seed1).next(). For each key the coin (seed3) says by next_double() <=
// randomness whether to jump to Random1.next() << 32 | Random2(seed2).next(); otherwise the key is
// the last one plus 1. Keys are never negative and have up to 63 bits, bit 31 clear at each jump.
// The keys of different generators, and those of one, may repeat.
class SemiRandomGenerator {
 public:
  // `randomness` is the chance of a jump: 1 jumps always; 0 once in 2^31 keys, as the original
  // does, because the coin may come to be 0.
  SemiRandomGenerator(int32_t seed1, int32_t seed2, int32_t seed3, double randomness);

  int64_t next();
  // Fills all of `keys` with the next ones.
  void next(std::span<int64_t> keys);

 private:
  DotnetRandom high_;
  DotnetRandom low_;
  DotnetRandom coin_;
  double randomness_;
  int64_t last_;
};

}  // namespace stride
