// Indexes on several devices, each of which has a copy, and searches that are shared out among
// them.
#pragma once

#include <memory>

#include "gpu/several/device_set.h"
#include "gpu/tree_index.h"

namespace stride {

// devices: outlives it.
std::unique_ptr<TreeIndex> make_several_trees(DeviceSet& devices);

}  // namespace stride
