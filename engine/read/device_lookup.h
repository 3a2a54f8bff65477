// Batches whose queries and results lie in the memory of a device: Snapshot::find_device() and
// get_device().
#pragma once

#include <memory>
#include <span>

#include "engine/catalog/version.h"
#include "engine/device/executor.h"
#include "engine/lookup_result.h"
#include "engine/row_columns.h"
#include "storage/schema.h"

namespace stride {

// The device, for queries and results that lie in its memory. invalid_argument: they do not.
// unavailable: there is none.
Result<std::shared_ptr<Backend>> device_that_holds(Executor& executor, const KeyColumn& queries,
                                                   const void* out);
Status find_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                      Location* out, void* stream);
Status get_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                     const DeviceValues& out, void* stream);
// Rows of locations that a search of the same segments has left in the device's memory.
Status rows_on_device(Executor& executor, const SegmentList& segments, const Location* locations,
                      uint64_t count, const GatheredRows& out, void* stream);
// Keys of the schema's key columns, whose cells lie in the device's memory as the keys do.
Status make_keys_on_device(Executor& executor, const Schema& schema,
                           std::span<const CellColumn> columns, std::byte* keys, void* stream);

}  // namespace stride
