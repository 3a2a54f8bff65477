// The records of a workload, as the engines get them: one pair of columns for each flow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "storage/column.h"

namespace stride::benchmark {

// What one flow writes, in this order: a later record of a key replaces an earlier one.
struct Flow {
  KeyColumn keys;
  ValueColumn values;
};

// Views on the flows' columns, with all records numbered through: flow 0's first. At most 2^32 - 1
// records. Immutable.
class Records {
 public:
  Records() = default;
  explicit Records(std::vector<Flow> flows) : flows_(std::move(flows)) {
    starts_.push_back(0);
    for (const Flow& flow : flows_) starts_.push_back(starts_.back() + flow.keys.size);
  }

  const std::vector<Flow>& flows() const { return flows_; }
  uint64_t size() const { return starts_.empty() ? 0 : starts_.back(); }
  uint64_t start(uint64_t flow) const { return starts_[flow]; }
  uint64_t flow_of(uint64_t row) const {
    return static_cast<uint64_t>(std::upper_bound(starts_.begin(), starts_.end(), row) -
                                 starts_.begin()) -
           1;
  }
  Bytes key(uint64_t row) const {
    uint64_t flow = flow_of(row);
    return flows_[flow].keys[row - starts_[flow]];
  }
  Bytes value(uint64_t row) const {
    uint64_t flow = flow_of(row);
    return flows_[flow].values[row - starts_[flow]];
  }
  // Returns the length of every key, or 0 where they differ in length.
  uint32_t key_width() const {
    uint32_t width = flows_.empty() || !flows_[0].keys.is_fixed() ? 0 : flows_[0].keys.width;
    for (const Flow& flow : flows_) {
      if (!flow.keys.is_fixed() || flow.keys.width != width) return 0;
    }
    return width;
  }
  // Counts all keys and values, replaced ones too.
  uint64_t bytes() const {
    uint64_t bytes = 0;
    for (const Flow& flow : flows_) bytes += flow.keys.bytes() + flow.values.bytes();
    return bytes;
  }
  uint64_t longest_value() const {
    uint64_t longest = 0;
    for (const Flow& flow : flows_) {
      for (uint64_t i = 0; i < flow.values.size; ++i) {
        longest = std::max<uint64_t>(longest, flow.values[i].size());
      }
    }
    return longest;
  }

 private:
  std::vector<Flow> flows_;
  std::vector<uint64_t> starts_;  // of each flow, and the end
};

}  // namespace stride::benchmark
