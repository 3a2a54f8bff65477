#include "engine/read/batch_search.h"

#include <algorithm>

namespace stride {
namespace {

std::vector<const Segment*> segments_of(const SegmentList& segments) {
  std::vector<const Segment*> list;
  for (const auto& s : segments) list.push_back(&s->segment());
  return list;
}

}  // namespace

Status HostQueries::copy_from(Backend& device) {
  const void* p = column_.is_fixed() ? static_cast<const void*>(column_.data) : column_.offsets;
  if (column_.size == 0 || !device.is_on_device(p)) return {};
  uint64_t first = 0, end = column_.size * column_.width;
  if (!column_.is_fixed()) {
    offsets_.resize(column_.size + 1);
    STRIDE_TRY(device.copy(offsets_.data(), column_.offsets, offsets_.size() * 8));
    column_.offsets = offsets_.data();
    first = offsets_.front();
    end = offsets_.back();
  }
  bytes_.resize(end - first);
  STRIDE_TRY(device.copy(bytes_.data(), column_.data + first, bytes_.size()));
  column_.data = bytes_.data() - first;
  return {};
}

BatchSearch::BatchSearch(Executor& executor, const SegmentList& segments, uint64_t queries)
    : executor_(executor),
      segments_(segments),
      cold_(segments_of(segments), {.queries = queries}) {}

Status BatchSearch::prepare(HostQueries* queries) {
  for (const auto& s : segments_) STRIDE_TRY(s->prepare());
  batch_ = executor_.batch(segments_, queries->column().size);
  for (size_t i = 0; i < segments_.size(); ++i) {
    const IndexedSegment& s = *segments_[i];
    sources_.push_back({&s, s.values(), s.kinds(), s.erased().empty() ? nullptr : &s.erased(),
                        batch_.indexes()[i].guard != nullptr, s.has_tombstones()});
  }
  if (!batch_.all_on_device()) {
    if (auto device = executor_.device_if_known()) STRIDE_TRY(queries->copy_from(*device));
    STRIDE_TRY(cold_.prefetch_search(queries->column().size));
  }
  return {};
}

Status BatchSearch::locate(HostQueries* queries, const TakeLocations& take,
                           const std::function<void()>& begin_again) {
  if (batch_.any_on_device()) {
    Status status = batch_.all_on_device() ? batch_.device().tree_index().find_blocks(
                                                 batch_.indexes(), queries->column(), take)
                                           : locate_mixed(queries->column(), take);
    if (status.ok()) executor_.count_device_keys(queries->column().size);
    if (!executor_.failed(status)) return status;
    STRIDE_TRY(leave_device(queries));
    if (begin_again) begin_again();
  }
  return host().tree_index().find_blocks(batch_.indexes(), queries->column(), take);
}

Status BatchSearch::leave_device(HostQueries* queries) {
  if (batch_.all_on_device()) STRIDE_TRY(queries->copy_from(batch_.device()));
  batch_.leave_device();
  return {};
}

uint64_t BatchSearch::value_width() const {
  uint64_t width = sources_.empty() ? 0 : sources_[0].values.column.width;
  for (const Source& s : sources_)
    if (s.values.shared() || !s.values.column.fixed || s.values.column.width != width) return 0;
  return width;
}

bool BatchSearch::is_plain() const {
  return std::none_of(sources_.begin(), sources_.end(),
                      [](const Source& s) { return s.guarded || s.has_tombstones || s.erased; });
}

Status BatchSearch::locate_mixed(const KeyColumn& queries, const TakeLocations& take) {
  std::vector<IndexView> parts[2];  // of the host, of the device
  std::vector<uint32_t> numbers[2];
  for (uint32_t i = 0; i < batch_.indexes().size(); ++i) {
    const IndexView& index = batch_.indexes()[i];
    parts[index.resident != nullptr].push_back(index);
    numbers[index.resident != nullptr].push_back(i);
  }
  BulkVector<Location> there(queries.size);
  STRIDE_TRY(batch_.device().tree_index().find_blocks(
      parts[1], queries, [&](uint64_t first, std::span<const Location> locations) {
        for (uint64_t i = 0; i < locations.size(); ++i) {
          Location at = locations[i];
          if (at.found()) at.index = numbers[1][at.index];
          there[first + i] = at;
        }
        return Status();
      }));
  return host().tree_index().find_blocks(parts[0], queries,
                                         [&](uint64_t first, std::span<const Location> locations) {
                                           for (uint64_t i = 0; i < locations.size(); ++i) {
                                             Location here = locations[i];
                                             if (!here.found()) continue;
                                             here.index = numbers[0][here.index];
                                             if (here.index < there[first + i].index)
                                               there[first + i] = here;
                                           }
                                           return take(first, {&there[first], locations.size()});
                                         });
}

}  // namespace stride
