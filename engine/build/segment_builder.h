// Builds a segment from rows in key order: columns, tree, file. Whoever has a source of rows
// instantiates it with segment_builder_body.h.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/build/row_source.h"
#include "engine/device/executor.h"
#include "gpu/backend.h"
#include "storage/file.h"
#include "storage/segment.h"
#include "storage/segment_writer.h"

namespace stride {

struct SegmentBuildOptions {
  FileSystem* fs = nullptr;  // null: the segment stays in memory, and has no file
  Executor* executor = nullptr;
  std::string path;
  uint64_t id = 0;
  const TreeOptions* tree = nullptr;   // null: no tree
  bool share_equal_values = false;     // where that makes the segment smaller
  bool key_filter = false;             // of use where older segments are searched after this one
  uint64_t resident_budget_bytes = 0;  // the image stays in memory where it is no larger
  std::shared_ptr<IoThreads> io;       // write the file
  // Where it becomes true the build ends soon, with `closed`. Null: it never does.
  const std::atomic<bool>* stop = nullptr;
  WaitFor wait = WaitFor::sync;
};

// Preconditions: rows.size() > 0, and keys ascend strictly. Rows is a RowRange.
template <class Rows>
Result<std::shared_ptr<Segment>> build_segment(const Rows& rows,
                                               const SegmentBuildOptions& options);

}  // namespace stride
