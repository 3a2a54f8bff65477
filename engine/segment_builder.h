// Builds a segment from rows in key order: columns, tree, file.
#pragma once

#include <memory>
#include <string>

#include "engine/row_source.h"
#include "gpu/backend.h"
#include "storage/file.h"
#include "storage/segment.h"

namespace stride {

struct SegmentBuildOptions {
  FileSystem* fs = nullptr;
  Backend* backend = nullptr;
  std::string path;
  uint64_t id = 0;
  const TreeOptions* tree = nullptr;
  uint64_t resident_budget_bytes = 0;  // the image stays in memory where it is no larger
  bool sync = true;
};

// Precondition: rows.size() > 0; keys ascend strictly. Rows is StagedRows or MergedRows.
template <class Rows>
Result<std::shared_ptr<Segment>> build_segment(const Rows& rows, const SegmentBuildOptions& options);

}  // namespace stride
