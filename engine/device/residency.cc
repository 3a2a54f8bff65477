#include "engine/device/residency.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <string>

#include "engine/read/cold_read.h"

namespace stride {
namespace {

// A segment has earned its place on the device when so many batches were searched on the host that
// to bring it would have taken as long: a row takes about 0.5 ns to bring, and a query 3 to 4 ns
// longer on the host's cores (ski rental).
constexpr uint64_t rows_per_query = 8;
// To bring up a device takes some 0.3 s, as long as so many queries or rows.
constexpr uint64_t worth_a_device = uint64_t{1} << 22;

bool is_device_failure(const Status& status) {
  return status.code() == StatusCode::io_error || status.code() == StatusCode::unavailable;
}

}  // namespace

Result<std::shared_ptr<Residency>> Residency::make(const Options& options) {
  if (!options.shared_backend && options.gpu_memory_limit_bytes &&
      options.gpu_memory_limit_bytes < least_memory_limit)
    return Status::invalid("gpu_memory_limit_bytes is " +
                           std::to_string(options.gpu_memory_limit_bytes) + ", less than the " +
                           std::to_string(least_memory_limit) +
                           " bytes that the chunks of a batch may need")
        .with_remedy("raise it, or set it to 0 for nine tenths of what is free");
  std::shared_ptr<Residency> residency(new Residency());
  residency->kind_ = options.backend;
  residency->placement_ = options.value_placement;
  residency->memory_limit_ = options.gpu_memory_limit_bytes;
  if (std::shared_ptr<Backend> shared = options.shared_backend) {
    residency->kind_ = shared->has_device() ? BackendKind::cuda : BackendKind::host;
    residency->host_ = shared->has_device() ? Backend::host(shared->threads()) : shared;
    residency->device_ = shared->has_device() ? shared : nullptr;
    residency->looked_ = true;
    return residency;
  }
  residency->host_ = Backend::host(options.threads);
  if (options.backend == BackendKind::cuda) {
    auto device =
        Backend::cuda({.memory_limit = options.gpu_memory_limit_bytes, .host = residency->host_});
    if (!device.ok()) return device.status();
    residency->device_ = std::move(*device);
    residency->looked_ = true;
  }
  return residency;
}

std::shared_ptr<Backend> Residency::device() {
  if (kind_ == BackendKind::host || lost_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard looking(look_mutex_);
  if (!looked_) {
    looked_ = true;
    auto device = Backend::cuda({.memory_limit = memory_limit_, .host = host_});
    std::lock_guard lock(device_mutex_);
    if (device.ok()) {
      device_ = std::move(*device);
      use_costs(*device_);
    }
  }
  return device_if_known();
}

// The mutex is held.
void Residency::use_costs(Backend& backend) {
  auto known = costs_.find(backend.name());
  if (known != costs_.end()) backend.tree_index().set_access_costs(known->second);
}

void Residency::set_costs(const BackendCosts& costs) {
  std::lock_guard lock(device_mutex_);
  costs_ = costs;
  use_costs(*host_);
  if (device_) use_costs(*device_);
}

Status Residency::measure_costs(BackendCosts* costs) {
  STRIDE_TRY(host_->tree_index().measure_costs(&(*costs)[host_->name()]));
  std::shared_ptr<Backend> device = this->device();
  if (!device) return {};
  AccessCosts of_device;
  Status status = device->tree_index().measure_costs(&of_device);
  if (failed(status)) return {};
  STRIDE_TRY(status);
  (*costs)[device->name()] = of_device;
  return {};
}

std::shared_ptr<Backend> Residency::device_if_known() {
  if (kind_ == BackendKind::host) return nullptr;
  std::lock_guard lock(device_mutex_);
  return device_;
}

std::shared_ptr<Backend> Residency::device_for(uint64_t work) {
  if (kind_ == BackendKind::automatic &&
      demand_.fetch_add(work, std::memory_order_relaxed) + work < worth_a_device)
    return nullptr;
  return device();
}

std::string Residency::name() {
  std::lock_guard lock(device_mutex_);
  return device_ && !lost_ ? device_->name() : host_->name();
}

bool Residency::failed(const Status& status) {
  if (status.ok()) return false;
  if (status.code() == StatusCode::resource_exhausted) return true;
  if (!is_device_failure(status)) return false;
  if (lost_.exchange(true)) return true;
  std::lock_guard lock(bring_mutex_);
  while (evict_one({})) {
  }
  return true;
}

Residency::Batch Residency::batch(const SegmentList& segments, uint64_t queries, bool insist) {
  Batch batch;
  for (const auto& segment : segments) batch.indexes_.push_back(segment->index());
  uint64_t least = std::max(least_queries, crossover());
  if (!insist && (kind_ == BackendKind::host || queries < least || segments.empty())) return batch;
  std::shared_ptr<Backend> device = insist ? this->device() : device_for(queries);
  if (!device) return batch;
  bring(device, segments, queries, insist);
  if (lost_ || (!insist && queries < crossover())) return batch;
  batch.device_ = std::move(device);
  for (size_t i = 0; i < segments.size(); ++i) {
    std::shared_ptr<const DeviceCopy> copy = segments[i]->device_slot().get();
    if (!copy) continue;
    ++batch.resident_;
    batch.with_values_ += copy->index->has_values();
    batch.indexes_[i].resident = copy->index.get();
    batch.pins_.push_back(std::move(copy));
  }
  return batch;
}

void Residency::bring(const std::shared_ptr<Backend>& device, const SegmentList& segments,
                      uint64_t queries, bool insist) {
  bool missing = false;
  for (const auto& segment : segments) {
    DeviceSlot& slot = segment->device_slot();
    slot.last_use = ++clock_;
    slot.queries += queries;
    missing |= lacks(*segment);
  }
  if (!missing) return;
  // Others that come meanwhile do not wait: they go to the host.
  std::unique_lock lock(bring_mutex_, std::defer_lock);
  if (insist) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;
  }
  for (const auto& segment : segments) {
    DeviceSlot& slot = segment->device_slot();
    bool earned = insist || slot.queries >= segment->rows() / rows_per_query;
    bool at_once = kind_ == BackendKind::cuda && !slot.refused;
    if (lost_ || !lacks(*segment) || !(earned || at_once)) continue;
    slot.refused = true;
    if (!bring_file(*segment).ok()) continue;  // the host's search says what is wrong
    auto resident = copy_to(*device, segments, *segment, earned);
    slot.queries = 0;
    slot.refused = !resident.ok();
    if (!resident.ok()) {
      if (!is_device_failure(resident.status())) continue;
      lost_ = true;
      while (evict_one({})) {
      }
      return;
    }
    slot.set(std::make_shared<const DeviceCopy>(DeviceCopy{device, *resident}));
    std::erase_if(on_device_, [&](const auto& s) { return s.expired() || s.lock() == segment; });
    on_device_.push_back(segment);
    if (segment->rows() >= 4 * calibrated_rows_) calibrate(*device, *segment, **resident);
  }
}

bool Residency::lacks(IndexedSegment& segment) const {
  auto copy = segment.device_slot().get();
  return !copy || (places_values(segment) && !copy->index->has_values());
}

// What is going to be copied, from the disk.
Status Residency::bring_file(const IndexedSegment& segment) const {
  const PackedColumn &keys = segment.keys(), &values = segment.values().column;
  STRIDE_TRY(bring_whole(segment.segment(), {keys.data, keys.data_bytes}));
  if (!places_values(segment)) return {};
  return bring_whole(segment.segment(), {values.data, values.data_bytes});
}

Result<std::shared_ptr<ResidentIndex>> Residency::copy_to(Backend& device,
                                                          const SegmentList& segments,
                                                          IndexedSegment& segment, bool may_evict) {
  static_assert(static_cast<int>(EntryKind::put) == 0);
  bool has_keys = segment.device_slot().get() != nullptr;
  IndexRows rows{nullptr, segment.kinds()};
  if (places_values(segment)) rows.values = &segment.values().column;
  for (;;) {
    auto resident = device.tree_index().make_resident(segment.index(), rows);
    if (resident.ok() || resident.status().code() != StatusCode::resource_exhausted)
      return resident;
    if (may_evict && evict_one(segments)) continue;
    if (!rows.values || has_keys) return resident;
    rows.values = nullptr;
  }
}

// The segment that was used least recently leaves. False: there is none.
bool Residency::evict_one(const SegmentList& but) {
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
  std::erase_if(on_device_, [&](const auto& segment) { return segment.lock() == oldest; });
  return true;
}

namespace {

// Keys of a segment at random, as queries.
struct SampledKeys {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> offsets{0};

  SampledKeys(const IndexedSegment& segment, uint64_t count) {
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < count; ++i) {
      Bytes key = segment.keys()[random() % segment.rows()];
      bytes.insert(bytes.end(), key.begin(), key.end());
      offsets.push_back(bytes.size());
    }
  }
  KeyColumn column(const IndexedSegment& segment, uint64_t count) const {
    const PackedColumn& keys = segment.keys();
    return keys.fixed ? KeyColumn::fixed(bytes.data(), keys.width, count)
                      : KeyColumn::variable(bytes.data(), offsets.data(), count);
  }
};

// The shortest of some calls, in seconds.
double fastest_find(Backend& backend, const IndexView& index, const KeyColumn& queries) {
  std::vector<Location> found(queries.size);
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 4; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    if (!backend.tree_index().find({&index, 1}, queries, found).ok()) break;
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
  }
  return least;
}

}  // namespace

// Two batch sizes on both sides give two lines; they cross at the batch size that is sought.
void Residency::calibrate(Backend& device, const IndexedSegment& segment,
                          const ResidentIndex& resident) {
  constexpr uint64_t small = least_queries, large = 32 * small;
  if (segment.rows() < large) return;
  SampledKeys keys(segment, large);
  IndexView here = segment.index(), there = here;
  there.resident = &resident;
  double seconds[2][2];
  for (int side = 0; side < 2; ++side) {
    Backend& backend = side == 0 ? *host_ : device;
    const IndexView& index = side == 0 ? here : there;
    seconds[side][0] = fastest_find(backend, index, keys.column(segment, small));
    seconds[side][1] = fastest_find(backend, index, keys.column(segment, large));
  }
  double ahead = seconds[1][0] - seconds[0][0];   // of the host, with few queries
  double behind = seconds[0][1] - seconds[1][1];  // of it, with many
  uint64_t crossover = small;
  if (ahead > 0) {
    double share = behind + ahead > 0 ? ahead / (behind + ahead) : 64;
    crossover = small + static_cast<uint64_t>(std::min(share, 64.0) * (large - small));
  }
  calibrated_rows_ = segment.rows();
  crossover_.store(crossover, std::memory_order_relaxed);
}

}  // namespace stride
