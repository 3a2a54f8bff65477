#include "gpu/plan/sample_groups.h"

#include <algorithm>
#include <cmath>

#include "gpu/keys/key_bits.h"

namespace stride {

SampleGroups::Group::Group(uint32_t bits, float count, float count_before)
    : depth(bits),
      keys(count),
      before(count_before),
      log2_keys(std::log2(std::max(count, 1.0f))),
      share(1 / count) {}

SampleGroups::SampleGroups(const KeyStatistics& statistics) : statistics_(statistics) {
  const KeyStatistics& s = statistics;
  // The points of one side of a sampled key, from the outermost one inwards.
  struct Side {
    const KeyStatistics& s;
    uint32_t begin, end;
    double most;  // keys on that side

    // Leaves what shares more than so many bits.
    void narrow(uint32_t bits) {
      while (end > begin && s.shared[end - 1] <= bits) {
        --end;
        most = s.distances[end] - 1;
      }
    }
    uint32_t depth() const { return end > begin ? s.shared[end - 1] : same_bits; }
    // The last key is somewhere from the outermost point on, where the next one is out.
    float keys() const {
      return end > begin ? static_cast<float>(std::sqrt(s.distances[end - 1] * most)) : 0;
    }
  };
  for (uint32_t sample = 0; sample < s.samples(); ++sample) {
    first_.push_back(static_cast<uint32_t>(groups_.size()));
    auto bytes = static_cast<float>(s.lengths[sample]);
    lengths_.push_back({bytes, std::log2(std::max(bytes, 1.0f)), std::ceil(bytes / 8)});
    const uint32_t rank = s.ranks[sample];
    const uint32_t* first = &s.first[2 * sample];
    Side before{s, first[0], first[1], static_cast<double>(rank)};
    Side after{s, first[1], first[2], static_cast<double>(s.keys - 1 - rank)};
    groups_.emplace_back(s.prefix_bits, static_cast<float>(s.keys), static_cast<float>(rank));
    uint32_t depth = 0;
    while (depth != same_bits) {
      before.narrow(depth);
      after.narrow(depth);
      depth = std::min(before.depth(), after.depth());
      float keys_before = before.keys();
      groups_.emplace_back(depth == same_bits ? depth : depth + s.prefix_bits,
                           1 + keys_before + after.keys(), keys_before);
    }
  }
}

}  // namespace stride
