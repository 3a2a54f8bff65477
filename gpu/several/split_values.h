// Values of an index in parts, for queries that are split by range on the devices.
#pragma once

#include "gpu/several/routed_search.h"
#include "gpu/tree_index.h"

namespace stride {

// As TreeIndex::get_on_device() without a stream, of an index in parts whose values have one width
// (out.width). Each device takes a share of the queries, a chunk at a time: puts those of each part
// together (gpu/several/range_split.h), and has the devices of the parts write their values where
// they belong.
//
// Precondition: can_split(), and queries and results lie in memory of the devices. unavailable: the
// device of a part has failed, or there is no way between two devices. resource_exhausted: no room
// on a device.
Status get_split(DeviceSet& devices, const IndexView& index, const KeyColumn& queries,
                 const DeviceValues& out);

}  // namespace stride
