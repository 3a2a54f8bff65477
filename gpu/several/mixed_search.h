// Searches of several indexes of which some are in parts: one index after the other, newest first,
// on copies in host memory of whatever lies elsewhere.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gpu/several/device_set.h"
#include "gpu/tree_index.h"

namespace stride {

// Whether any of them is in parts.
bool has_parts(std::span<const IndexView> indexes);

// A column where the host can read it.
class HostCopy {
 public:
  Status copy(DeviceSet& devices, const KeyColumn& column);
  const KeyColumn& column() const { return column_; }

 private:
  KeyColumn column_;
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_;
};

// As TreeIndex::find(), with queries and results in host memory. trees: those of all devices.
Status find_mixed(ExecutionContext& host, TreeIndex& trees, std::span<const IndexView> indexes,
                  const KeyColumn& queries, std::span<Location> out);
// As TreeIndex::find_values(). The queries are copied where a device has them.
Result<std::unique_ptr<FoundValues>> find_mixed_values(DeviceSet& devices, TreeIndex& trees,
                                                       std::span<const IndexView> indexes,
                                                       const KeyColumn& queries,
                                                       std::span<uint64_t> found,
                                                       std::span<uint64_t> ends);

}  // namespace stride
