// Point reads: one key, and batches.
#pragma once

#include <optional>
#include <vector>

#include "engine/snapshot.h"
#include "engine/version.h"

namespace stride {

Result<std::optional<Bytes>> lookup_one(const SegmentList& segments, Bytes key);
Status lookup_references(Backend& backend, const SegmentList& segments, const KeyColumn& queries,
                         FindResult* result);
Status lookup_copies(Backend& backend, const SegmentList& segments, const KeyColumn& queries,
                     GetResult* result);

}  // namespace stride
