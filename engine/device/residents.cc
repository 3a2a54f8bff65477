#include "engine/device/residents.h"

#include <algorithm>

#include "engine/read/cold_read.h"

namespace stride {
namespace {

// A segment has earned its place on the device when so many batches were searched on the host that
// copying it would have taken as long: a row takes about 0.5 ns to copy, and a query 3 to 4 ns
// longer on the host's cores (ski rental).
constexpr uint64_t rows_per_query = 8;

}  // namespace

Status Residents::prefetch(const std::shared_ptr<Backend>& device, const SegmentList& segments,
                           uint64_t queries, bool insist, std::vector<Copied>* copied) {
  bool missing = false;
  for (const auto& segment : segments) {
    DeviceSlot& slot = segment->device_slot();
    slot.last_use = ++clock_;
    slot.queries += queries;
    missing |= lacks(*segment);
  }
  if (!missing) return {};
  // Others that come meanwhile do not wait: they go to the host.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (insist) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return {};
  }
  for (const auto& segment : segments) {
    DeviceSlot& slot = segment->device_slot();
    bool earned = insist || slot.queries >= segment->rows() / rows_per_query;
    bool at_once = at_once_ && !slot.refused;
    if (given_up_ || !lacks(*segment) || !(earned || at_once)) continue;
    slot.refused = true;
    if (!prefetch_file(*segment).ok()) continue;  // the host's search says what is wrong
    auto resident = copy_to(*device, segments, *segment, earned);
    slot.queries = 0;
    slot.refused = !resident.ok();
    if (!resident.ok()) {
      if (!is_device_failure(resident.status())) continue;
      given_up_ = true;
      while (evict_one({})) {
      }
      return resident.status();
    }
    slot.set(std::make_shared<const DeviceCopy>(DeviceCopy{device, *resident}));
    std::erase_if(on_device_, [&](const auto& s) { return s.expired() || s.lock() == segment; });
    on_device_.push_back(segment);
    tell(EventKind::device_copied, *segment, (*resident)->memory_bytes());
    copied->push_back({segment, std::move(*resident)});
  }
  return {};
}

// A segment does not know its table's name.
void Residents::tell(EventKind kind, const IndexedSegment& segment, uint64_t bytes) noexcept {
  WorkCounters& work = monitor_.work();
  ++(kind == EventKind::device_copied ? work.device_copies : work.device_evictions);
  monitor_.events().push({.kind = kind,
                          .run = segment.record().run,
                          .rows = segment.record().rows,
                          .bytes_out = bytes});
}

void Residents::give_up() {
  given_up_ = true;
  std::lock_guard lock(mutex_);
  while (evict_one({})) {
  }
}

bool Residents::lacks(IndexedSegment& segment) const {
  if (segment.may_expire()) return false;
  auto copy = segment.device_slot().get();
  return !copy || (stores_values(segment) && !copy->index->has_values());
}

Status Residents::prefetch_file(const IndexedSegment& segment) const {
  const PackedColumn &keys = segment.keys(), &values = segment.values().column;
  STRIDE_TRY(prefetch_whole(segment.segment(), {keys.data, keys.data_bytes}));
  if (!stores_values(segment)) return {};
  return prefetch_whole(segment.segment(), {values.data, values.data_bytes});
}

namespace {

// A byte for each row: not 0 where it is a tombstone or erased. Empty: the kinds of the rows say
// it.
std::vector<uint8_t> hidden_rows(const IndexedSegment& segment) {
  std::vector<uint8_t> hidden;
  if (segment.erased().empty()) return hidden;
  hidden.resize(segment.rows());
  if (segment.kinds()) std::copy_n(segment.kinds(), segment.rows(), hidden.begin());
  for (const RowInterval& erased : segment.erased().list())
    std::fill(hidden.begin() + static_cast<ptrdiff_t>(erased.first),
              hidden.begin() + static_cast<ptrdiff_t>(erased.end), uint8_t{1});
  return hidden;
}

}  // namespace

Result<std::shared_ptr<ResidentIndex>> Residents::copy_to(Backend& device,
                                                          const SegmentList& segments,
                                                          IndexedSegment& segment, bool may_evict) {
  static_assert(static_cast<int>(EntryKind::put) == 0);
  bool has_keys = segment.device_slot().get() != nullptr;
  const std::vector<uint8_t> hidden = hidden_rows(segment);
  IndexRows rows{nullptr, hidden.empty() ? segment.kinds() : hidden.data()};
  if (stores_values(segment)) rows.values = &segment.values().column;
  for (;;) {
    auto resident = device.tree_index().make_resident(segment.index(), rows);
    if (resident.ok() || resident.status().code() != StatusCode::resource_exhausted)
      return resident;
    if (may_evict && evict_one(segments)) continue;
    if (!rows.values || has_keys) return resident;
    rows.values = nullptr;
  }
}

bool Residents::evict_one(const SegmentList& but) {
  std::shared_ptr<IndexedSegment> oldest;
  std::erase_if(on_device_, [](const auto& segment) { return segment.expired(); });
  for (const auto& weak : on_device_) {
    std::shared_ptr<IndexedSegment> segment = weak.lock();
    if (!segment || std::find(but.begin(), but.end(), segment) != but.end()) continue;
    if (!oldest || segment->device_slot().last_use < oldest->device_slot().last_use)
      oldest = std::move(segment);
  }
  if (!oldest) return false;
  oldest->device_slot().set(nullptr);
  oldest->device_slot().queries = 0;
  tell(EventKind::device_evicted, *oldest, 0);
  std::erase_if(on_device_, [&](const auto& segment) { return segment.lock() == oldest; });
  return true;
}

}  // namespace stride
