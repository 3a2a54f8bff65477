// Values of one width of an index in parts, for queries in any memory: found once for their places,
// and gathered by the devices of the parts when they are copied.
#pragma once

#include <memory>
#include <span>

#include "gpu/several/device_set.h"
#include "gpu/tree_index.h"

namespace stride {

// As TreeIndex::find_values(). Precondition: can_split(), and the index's values have one width
// (PartitionedIndex::value_width()). trees: those of all devices.
Result<std::unique_ptr<FoundValues>> find_part_values(DeviceSet& devices, TreeIndex& trees,
                                                      const IndexView& index,
                                                      const KeyColumn& queries,
                                                      std::span<uint64_t> found,
                                                      std::span<uint64_t> ends);

}  // namespace stride
