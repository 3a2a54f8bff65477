// The write load of STS DatabaseBenchmark: flows of records, as columns of bytes.
//
//   StsFlow flow({.records = 1'000'000, .flows = 4, .randomness = 1.0, .seed = 1}, 0);
//   std::vector<std::byte> keys, values;
//   std::vector<uint64_t> value_offsets;
//   while (flow.next_batch(4096, keys, values, value_offsets) != 0) { ... }
//
// The original gives each of F threads one flow of N records; here `records` is the total, F x N.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adapters/sts/key_generator.h"
#include "adapters/sts/tick.h"

namespace stride {

struct StsOptions {
  uint64_t records = 1'000'000;  // of all flows together
  uint32_t flows = 1;            // 1 .. kMaxStsFlows
  double randomness = 1.0;       // chance of a jump for each key, 0 .. 1
  uint64_t seed = 1;             // equal options give equal records
};

constexpr uint32_t kMaxStsFlows = uint32_t{1} << 28;

// The records of one flow: an equal share, and one more each for the first `records % flows` flows.
uint64_t sts_flow_records(const StsOptions& options, uint32_t flow);

// The seeds of one flow's generators, each in 1 .. 2^30.
struct StsFlowSeeds {
  int32_t key_high = 0;
  int32_t key_low = 0;
  int32_t coin = 0;
  int32_t tick = 0;

  friend bool operator==(const StsFlowSeeds&, const StsFlowSeeds&) = default;
};

// The rule: with h = SplitMix64's output function of `base`, generator g (0 .. 3, in the order of
// StsFlowSeeds) of flow f has the seed 1 + P((h + 4 f + g) mod 2^30), where P is a permutation of
// the 30-bit numbers that the upper half of h chooses (its steps are in workload.cc). So all seeds
// of one base are distinct, and lie far apart: System.Random makes related sequences of
// neighbouring seeds.
StsFlowSeeds sts_flow_seeds(uint64_t base, uint32_t flow);

// The records of one flow, in the order of writing. Not thread-safe: a thread has its own flow.
class StsFlow {
 public:
  // Preconditions: 1 <= options.flows <= kMaxStsFlows, flow < options.flows.
  StsFlow(const StsOptions& options, uint32_t flow);

  // Replaces the contents of the three columns by the next records, at most `max_records`, and
  // returns how many these are: 0 at the end of the flow.
  //   keys           n x kKeyBytes bytes, by encode_key
  //   values         stored ticks (tick.h) one after the other
  //   value_offsets  n + 1 offsets into `values`: 0, the end of each value
  // No allocation once the columns have the capacity for a batch.
  size_t next_batch(size_t max_records, std::vector<std::byte>& keys,
                    std::vector<std::byte>& values, std::vector<uint64_t>& value_offsets);

  // Records not handed out yet.
  uint64_t remaining() const { return remaining_; }

 private:
  StsFlow(const StsFlowSeeds& seeds, double randomness, uint64_t records);

  SemiRandomGenerator keys_;
  TickGenerator ticks_;
  uint64_t remaining_;
};

}  // namespace stride
