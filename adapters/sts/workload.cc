#include "adapters/sts/workload.h"

#include <algorithm>
#include <cassert>

namespace stride {
namespace {

constexpr uint32_t kSeedMask = (uint32_t{1} << 30) - 1;

// SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
uint64_t split_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A permutation of the 30-bit numbers: each step (exclusive or, odd factor, shift) can be undone.
uint32_t permute(uint32_t x, uint32_t key) {
  x = (x ^ key) & kSeedMask;
  x = ((x ^ (x >> 15)) * 0x2c1b3c6d) & kSeedMask;
  x = ((x ^ (x >> 12)) * 0x297a2d39) & kSeedMask;
  return x ^ (x >> 15);
}

}  // namespace

uint64_t sts_flow_records(const StsOptions& options, uint32_t flow) {
  assert(flow < options.flows);
  return options.records / options.flows + (flow < options.records % options.flows ? 1 : 0);
}

StsFlowSeeds sts_flow_seeds(uint64_t base, uint32_t flow) {
  assert(flow < kMaxStsFlows);
  const uint64_t hash = split_mix(base);
  const auto seed = [&](uint32_t generator) {
    const auto index = static_cast<uint32_t>((hash + 4 * uint64_t{flow} + generator) & kSeedMask);
    return static_cast<int32_t>(1 + permute(index, static_cast<uint32_t>(hash >> 32)));
  };
  return {.key_high = seed(0), .key_low = seed(1), .coin = seed(2), .tick = seed(3)};
}

StsFlow::StsFlow(const StsOptions& options, uint32_t flow)
    : StsFlow(sts_flow_seeds(options.seed, flow), options.randomness,
              sts_flow_records(options, flow)) {}

StsFlow::StsFlow(const StsFlowSeeds& seeds, double randomness, uint64_t records)
    : keys_(seeds.key_high, seeds.key_low, seeds.coin, randomness),
      ticks_(seeds.tick),
      remaining_(records) {}

size_t StsFlow::next_batch(size_t max_records, std::vector<std::byte>& keys,
                           std::vector<std::byte>& values, std::vector<uint64_t>& value_offsets) {
  const size_t n = std::min<uint64_t>(max_records, remaining_);
  keys.resize(n * kKeyBytes);
  values.resize(n * kMaxTickBytes);
  value_offsets.resize(n + 1);
  value_offsets[0] = 0;

  std::byte* end = values.data();
  for (size_t i = 0; i < n; ++i) {
    encode_key(keys_.next(), keys.data() + i * kKeyBytes);
    end = write_tick(ticks_.next(), end);
    value_offsets[i + 1] = static_cast<uint64_t>(end - values.data());
  }
  values.resize(value_offsets[n]);
  remaining_ -= n;
  return n;
}

}  // namespace stride
