#include "engine/catalog/segment_file.h"

namespace stride {

SegmentFile::~SegmentFile() {
  if (obsolete_) obsolete_->remove(std::move(path_), since_);
}

}  // namespace stride
