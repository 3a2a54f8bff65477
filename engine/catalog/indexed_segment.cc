#include "engine/catalog/indexed_segment.h"

#include "engine/read/cold_read.h"

namespace stride {
namespace {

SegmentRecord with_erased(SegmentRecord record, const RowIntervals& erased) {
  record.erased.add(erased);
  return record;
}

}  // namespace

IndexedSegment::IndexedSegment(const IndexedSegment& before, const RowIntervals& erased)
    : IndexedSegment(before.file_, before.segment_, with_erased(before.record_, erased)) {
  expiry_ = before.expiry_;
  ready_.store(before.ready_.load(std::memory_order_acquire), std::memory_order_relaxed);
}

IndexedSegment::IndexedSegment(const IndexedSegment& before, const ExpiryCheck& check)
    : IndexedSegment(before, RowIntervals()) {
  expiry_ = check;
}

IndexedSegment::IndexedSegment(std::shared_ptr<SegmentFile> file, std::shared_ptr<Segment> segment,
                               SegmentRecord record)
    : file_(std::move(file)),
      segment_(std::move(segment)),
      record_(std::move(record)),
      keys_(segment_->keys()),
      values_(segment_->values()),
      kinds_(segment_->kinds()),
      tree_(segment_->tree()),
      first_key_(segment_->first_key()),
      last_key_(segment_->last_key()),
      filter_(segment_->section(SectionType::key_filter)),
      readable_(segment_->open_failure().ok()) {
  beside_keys_ = values_.column;
  if (values_.shared()) {
    Bytes numbers = segment_->section(SectionType::value_numbers);
    beside_keys_ = {.data = numbers.data(),
                    .data_bytes = numbers.size(),
                    .size = keys_.size,
                    .width = values_.number_width};
  }
}

uint64_t IndexedSegment::live_bytes() const {
  if (erased().empty()) return record_.bytes;
  const double share = static_cast<double>(live_rows()) / static_cast<double>(record_.rows);
  return static_cast<uint64_t>(static_cast<double>(record_.bytes) * share);
}

Status IndexedSegment::prepare_once() const {
  std::lock_guard lock(prepare_mutex_);
  if (ready_.load(std::memory_order_relaxed)) return {};
  STRIDE_TRY(open_failure());
  for (Bytes section : {tree_, segment_->section(SectionType::key_filter)}) {
    STRIDE_TRY(prefetch_whole(*segment_, section));
    if (BlockGuard* guard = segment_->guard())
      if (!guard->ensure(section.data(), section.size())) return guard->failure();
  }
  if (!tree_.empty()) {
    Status s = check_tree(tree_, keys_.size);
    if (!s.ok()) return std::move(s).with_file(segment_->path());
  }
  ready_.store(true, std::memory_order_release);
  return {};
}

Status IndexedSegment::ensure_column(const PackedColumn& c, uint64_t first, uint64_t last) const {
  BlockGuard* guard = segment_->guard();
  if (!guard || first == last) return {};
  if (c.fixed) {
    return guard->ensure(c.data + first * c.width, (last - first) * c.width) ? Status()
                                                                             : guard->failure();
  }
  const PackedOffsets& o = c.offsets;
  uint64_t first_group = first >> PackedOffsets::group_bits;
  uint64_t last_group = last >> PackedOffsets::group_bits;
  auto* deltas = static_cast<const std::byte*>(o.deltas);
  if (!guard->ensure(o.bases + first_group, (last_group - first_group + 1) * sizeof(uint64_t)) ||
      !guard->ensure(deltas + first * o.delta_width, (last - first + 1) * o.delta_width))
    return guard->failure();
  Bytes begin = c[first], end = c[last - 1];
  if (end.data() + end.size() <= begin.data()) return {};
  return guard->ensure(begin.data(), end.data() + end.size() - begin.data()) ? Status()
                                                                             : guard->failure();
}

Status IndexedSegment::ensure_values(uint64_t first, uint64_t last) const {
  if (!values_.shared()) return ensure_column(values_.column, first, last);
  BlockGuard* guard = segment_->guard();
  if (!guard || first == last) return {};
  auto* numbers = static_cast<const std::byte*>(values_.numbers);
  if (!guard->ensure(numbers + first * values_.number_width, (last - first) * values_.number_width))
    return guard->failure();
  uint64_t before = values_.column.size;  // no value's number
  for (uint64_t row = first; row < last; ++row) {
    uint64_t at = values_.position(row);
    if (at != before) STRIDE_TRY(ensure_column(values_.column, at, at + 1));
    before = at;
  }
  return {};
}

Status IndexedSegment::key(uint64_t rank, Bytes* key) const {
  STRIDE_TRY(ensure_column(keys_, rank, rank + 1));
  *key = keys_[rank];
  return {};
}

Status IndexedSegment::value(uint64_t rank, Bytes* value) const {
  STRIDE_TRY(ensure_values(rank, rank + 1));
  *value = values_[rank];
  return {};
}

Status IndexedSegment::is_tombstone(uint64_t rank, bool* tombstone) const {
  *tombstone = false;
  if (!has_tombstones()) return {};
  if (BlockGuard* guard = segment_->guard()) {
    if (kinds_ && !guard->ensure(kinds_ + rank, 1)) return guard->failure();
    if (may_expire()) STRIDE_TRY(ensure_values(rank, rank + 1));
  }
  *tombstone = kind(rank) == EntryKind::tombstone;
  return {};
}

Status IndexedSegment::ensure_unchecked_rows(uint64_t first, uint64_t last) const {
  BlockGuard* guard = segment_->guard();
  if (!guard || first == last) return {};
  if (kinds_ && !guard->ensure(kinds_ + first, last - first)) return guard->failure();
  STRIDE_TRY(ensure_column(keys_, first, last));
  return ensure_values(first, last);
}

Status IndexedSegment::ensure_keys() const {
  STRIDE_TRY(open_failure());
  STRIDE_TRY(prefetch_whole(*segment_, {keys_.data, keys_.row_bytes()}));
  return ensure_column(keys_, 0, rows());
}

}  // namespace stride
