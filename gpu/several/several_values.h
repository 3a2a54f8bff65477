// Values that several devices have found, each those of a share of a batch.
#pragma once

#include <memory>
#include <span>

#include "gpu/several/device_set.h"
#include "gpu/tree_index.h"

namespace stride {

// As TreeIndex::find_values(). devices: outlives the result.
Result<std::unique_ptr<FoundValues>> find_values_on_several(DeviceSet& devices,
                                                            std::span<const IndexView> indexes,
                                                            const KeyColumn& queries,
                                                            std::span<uint64_t> found,
                                                            std::span<uint64_t> ends);

}  // namespace stride
