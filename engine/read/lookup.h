// Point reads: one key, and batches.
#pragma once

#include <optional>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/device/executor.h"
#include "engine/lookup_result.h"

namespace stride {

Result<std::optional<Bytes>> lookup_one(const SegmentList& segments, Bytes key);
Status lookup_references(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                         FindResult* result);
Status lookup_copies(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                     GetResult* result);
// Snapshot::find_device() and get_device().
// The device, for queries and results that lie in its memory. invalid_argument: they do not.
// unavailable: there is none.
Result<std::shared_ptr<Backend>> device_that_holds(Executor& executor, const KeyColumn& queries,
                                                   const void* out);
Status find_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                      Location* out, void* stream);
Status get_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                     const DeviceValues& out, void* stream);

}  // namespace stride
