#include "engine/catalog/segment_file.h"

#include "storage/no_throw.h"

namespace stride {

SegmentFile::~SegmentFile() {
  if (!obsolete_.load(std::memory_order_relaxed)) return;
  // A file that cannot be removed now is removed when the database is next opened.
  Status ignored = no_throw([&] { return fs_.remove(path_); });
}

}  // namespace stride
