// Opens the segments that a manifest names, for a writer that recovers them and for a reader that
// meets them.
#pragma once

#include <memory>
#include <string>

#include "engine/catalog/database_context.h"
#include "storage/manifest.h"
#include "storage/manifest_replay.h"
#include "storage/segment.h"
#include "storage/status.h"

namespace stride {

// Checks that the file fits its record. not_found: there is no such file.
Result<std::shared_ptr<Segment>> open_segment(const DatabaseContext& context,
                                              const SegmentRecord& record,
                                              const TableRecord& table);
// What reads say of a segment that cannot be opened.
Status as_damage(const Status& s, const std::string& file);

// Whether all files are whole that an edit names which was not synced. before: the edits before it.
// corruption or not_found: one of them is not.
Status check_whole(const DatabaseContext& context, const VersionEdit& edit,
                   const ManifestReplay& before);

}  // namespace stride
