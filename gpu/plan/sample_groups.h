// The keys that are near sampled ones, as a tree can group them.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/key_statistics.h"

namespace stride {

// For each sampled key the groups of keys that a tree can put it into: those that share so many
// bits with it, outermost first.
class SampleGroups {
 public:
  struct Group {
    uint32_t depth;  // bits that all its keys share; same_bits: all, or it is one key
    float keys;
    float before;  // keys of the group before this one
    float log2_keys;
    float share;  // 1 / keys

    Group(uint32_t bits, float count, float count_before);
  };

  struct Length {
    float bytes;
    float log2_bytes;
    float words;  // of 8 bytes
  };

  // The statistics must outlive it.
  explicit SampleGroups(const KeyStatistics& statistics);

  const KeyStatistics& statistics() const { return statistics_; }
  // The outermost group, the one of all keys. The last has depth same_bits.
  const Group* of(uint32_t sample) const { return groups_.data() + first_[sample]; }
  const Length& length_of(uint32_t sample) const { return lengths_[sample]; }

 private:
  const KeyStatistics& statistics_;
  std::vector<Group> groups_;
  std::vector<uint32_t> first_;
  std::vector<Length> lengths_;
};

}  // namespace stride
