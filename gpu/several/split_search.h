// Searches of an index in parts whose queries are split by range on the devices.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/several/routed_search.h"

namespace stride {

// Whether search_split() can do a batch: queries and keys have one width, and all parts lie on
// devices that work. Other batches are routed by the host.
bool can_split(const DeviceSet& devices, const IndexView& index, const KeyColumn& queries);

// Each device takes a share of the queries, in any memory, a chunk at a time: puts those of each
// part together (gpu/several/range_split.h), has the devices of the parts search them where they
// lie, and puts the answers in the order of the queries. Several chunks are under way at once.
// Precondition: can_split(). resource_exhausted: no room on a device.
Status search_split(DeviceSet& devices, const IndexView& index, RankSearch search,
                    const KeyColumn& queries, std::span<uint32_t> out);

}  // namespace stride
