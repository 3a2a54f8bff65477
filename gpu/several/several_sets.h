// Sets whose vectors are spread over devices by hash.
//
// Each device has a set of its own, of the vectors that belong to it. A batch is shared out; a
// device puts the vectors of its share together by where they belong (gpu/several/vector_split.h),
// copies them there as a whole, and puts the ids that come back in order.
#pragma once

#include <memory>

#include "gpu/sets.h"
#include "gpu/several/device_set.h"

namespace stride {

// Sets of slots and compressed sets with room for SeveralOptions::min_device_share vectors on each
// device are spread. Dense sets, whose ids follow the order of all vectors, smaller ones and sets
// of byte strings are the first device's. devices: outlives the result, and what it makes.
std::unique_ptr<Sets> make_several_sets(DeviceSet& devices);

}  // namespace stride
