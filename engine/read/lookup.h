// Point reads: one key, and batches.
#pragma once

#include <optional>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/device/executor.h"
#include "engine/lookup_result.h"

namespace stride {

// A row that the check hides counts as a tombstone.
Result<std::optional<Bytes>> lookup_one(const SegmentList& segments, Bytes key,
                                        const ExpiryCheck& expiry = {});
Status lookup_references(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                         FindResult* result);
Status lookup_copies(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                     GetResult* result);

}  // namespace stride
