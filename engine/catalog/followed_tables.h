// The tables of a version that a reader makes of the manifest's state, with what it has open.
#pragma once

#include <memory>

#include "engine/catalog/database_context.h"
#include "engine/catalog/version.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// What a segment is whose file is not there.
enum class MissingSegment : uint8_t {
  error,   // not_found: the writer may have replaced it meanwhile
  damage,  // reads of its table fail, as of any damaged segment
};

// A copy of `before` with the tables and segments that the state names. Tables that are the same
// are shared, and segments of others stay open; the rest are opened. Costs about as much as the
// state has tables and segments, a file that is opened some 50 microseconds.
Result<std::shared_ptr<Version>> with_tables_of(const DatabaseContext& context,
                                                const ManifestState& state, const Version& before,
                                                MissingSegment missing);

}  // namespace stride
