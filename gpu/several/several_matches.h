// Longest-prefix match on several devices, each of which has a copy of what is searched.
#pragma once

#include <memory>

#include "gpu/longest_prefix.h"
#include "gpu/several/device_set.h"

namespace stride {

// devices: outlives it.
std::unique_ptr<LongestPrefix> make_several_matches(DeviceSet& devices);

}  // namespace stride
