#include "engine/catalog/segment_list.h"

#include <algorithm>

#include "engine/catalog/indexed_segment.h"

namespace stride {

SegmentList::SegmentList(const_iterator first, const_iterator last) {
  add(std::vector<value_type>(first, last));
}

SegmentList SegmentList::with_newer(std::span<const value_type> newest_first) const {
  SegmentList list = *this;
  list.add(newest_first);
  return list;
}

void SegmentList::add(std::span<const value_type> newest_first) {
  Chunk last;
  if (size_ % chunk_segments != 0) {
    last = *chunks_.back();
    chunks_.pop_back();
  }
  last.reserve(std::min(chunk_segments, last.size() + newest_first.size()));
  for (auto s = newest_first.rbegin(); s != newest_first.rend(); ++s) {
    last.push_back(*s);
    ++size_;
    file_bytes_ += (*s)->record().bytes;
    resident_bytes_ += (*s)->segment().resident_bytes();
    if (last.size() < chunk_segments) continue;
    chunks_.push_back(std::make_shared<const Chunk>(std::move(last)));
    last = {};
  }
  if (!last.empty()) chunks_.push_back(std::make_shared<const Chunk>(std::move(last)));
}

}  // namespace stride
