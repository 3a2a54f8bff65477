// What one of several devices does alone: the first that works, or the one where the columns lie.
#pragma once

#include <memory>

#include "gpu/several/device_set.h"
#include "gpu/sorter.h"

namespace stride {

// devices: outlives them, and what they make.
std::unique_ptr<Sorter> make_first_sorter(DeviceSet& devices);

}  // namespace stride
