#include "engine/merge/tiers.h"

#include <algorithm>

namespace stride {
namespace {

unsigned tier_of(uint64_t bytes, const TierOptions& options) {
  unsigned tier = 0;
  for (uint64_t size = std::max<uint64_t>(bytes / options.smallest, 1); size >= options.fanout;
       size /= options.fanout)
    ++tier;
  return tier;
}

// Smaller runs between two of the tier, or newer than all of it, are merged with it: to leave them
// out would leave a gap.
std::optional<RunRange> full_tier(std::span<const uint64_t> bytes, unsigned tier,
                                  const TierOptions& options) {
  RunRange stretch;
  uint64_t members = 0;
  for (size_t i = 0; i <= bytes.size(); ++i) {
    if (i < bytes.size() && tier_of(bytes[i], options) <= tier) {
      stretch.first = stretch.count == 0 ? i : stretch.first;
      ++stretch.count;
      members += tier_of(bytes[i], options) == tier;
      continue;
    }
    if (members >= options.fanout) return stretch;
    stretch = {};
    members = 0;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RunRange> choose_tier(std::span<const uint64_t> bytes, uint64_t written,
                                    const TierOptions& options) {
  if (bytes.size() < 2) return std::nullopt;
  const double due = options.bottom_share * static_cast<double>(bytes.back());
  if (written > 0 && static_cast<double>(written) >= due) return RunRange{0, bytes.size()};
  unsigned largest = 0;
  for (uint64_t run : bytes) largest = std::max(largest, tier_of(run, options));
  for (unsigned tier = 0; tier <= largest; ++tier)
    if (auto range = full_tier(bytes, tier, options)) return range;
  return std::nullopt;
}

}  // namespace stride
