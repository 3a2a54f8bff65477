#include "engine/device/executor.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace stride {
namespace {

// To bring up a device takes some 0.3 s, as long as so many queries or rows.
constexpr uint64_t worth_a_device = uint64_t{1} << 22;

}  // namespace

Result<std::shared_ptr<Executor>> Executor::make(const Options& options,
                                                 std::shared_ptr<Monitor> monitor) {
  if (!options.shared_backend && options.gpu_memory_limit_bytes &&
      options.gpu_memory_limit_bytes < min_memory_limit)
    return Status::invalid("gpu_memory_limit_bytes is " +
                           std::to_string(options.gpu_memory_limit_bytes) + ", less than the " +
                           std::to_string(min_memory_limit) +
                           " bytes that the chunks of a batch may need")
        .with_remedy("raise it, or set it to 0 for nine tenths of what is free");
  std::shared_ptr<Backend> shared = options.shared_backend;
  BackendKind kind = options.backend;
  if (shared) kind = shared->has_device() ? BackendKind::cuda : BackendKind::host;
  std::shared_ptr<Executor> executor(new Executor(kind, options, std::move(monitor)));
  if (shared) {
    executor->host_ = shared->has_device() ? Backend::host(shared->threads()) : shared;
    executor->device_ = shared->has_device() ? shared : nullptr;
    executor->looked_ = true;
    return executor;
  }
  executor->host_ = Backend::host(options.threads);
  if (options.backend == BackendKind::automatic)
    STRIDE_TRY(Backend::check_devices(options.devices));
  if (options.backend == BackendKind::cuda) {
    auto device = executor->make_device();
    if (!device.ok()) return device.status();
    executor->device_ = std::move(*device);
    executor->looked_ = true;
  }
  return executor;
}

Result<std::unique_ptr<Backend>> Executor::make_device() const {
  return Backend::devices({.devices = numbers_, .memory_limit = memory_limit_, .host = host_});
}

std::shared_ptr<Backend> Executor::device() {
  if (kind_ == BackendKind::host || lost_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard looking(look_mutex_);
  if (!looked_) {
    looked_ = true;
    auto device = make_device();
    std::lock_guard lock(device_mutex_);
    if (device.ok()) {
      device_ = std::move(*device);
      use_costs(*device_);
    }
  }
  return device_if_known();
}

void Executor::use_costs(Backend& backend) {
  auto known = costs_.find(backend.name());
  if (known != costs_.end()) backend.tree_index().set_access_costs(known->second);
}

void Executor::set_costs(const BackendCosts& costs) {
  std::lock_guard lock(device_mutex_);
  costs_ = costs;
  use_costs(*host_);
  if (device_) use_costs(*device_);
}

Status Executor::measure_costs(BackendCosts* costs) {
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

std::shared_ptr<Backend> Executor::device_if_known() {
  if (kind_ == BackendKind::host) return nullptr;
  std::lock_guard lock(device_mutex_);
  return device_;
}

std::shared_ptr<Backend> Executor::device_for(uint64_t work) {
  if (kind_ == BackendKind::automatic &&
      demand_.fetch_add(work, std::memory_order_relaxed) + work < worth_a_device)
    return nullptr;
  return device();
}

std::string Executor::name() {
  std::lock_guard lock(device_mutex_);
  return device_ && !lost_ ? device_->name() : host_->name();
}

bool Executor::failed(const Status& status) {
  if (status.ok()) return false;
  if (status.code() == StatusCode::resource_exhausted) return true;
  if (!is_device_failure(status)) return false;
  note_losses();
  std::shared_ptr<Backend> device = device_if_known();
  const std::vector<DeviceState> several =
      device ? device->device_states() : std::vector<DeviceState>();
  if (std::any_of(several.begin(), several.end(),
                  [](const DeviceState& one) { return one.lost.ok(); }))
    return true;
  if (lost_.exchange(true)) return true;
  if (several.empty()) monitor_->events().push({.kind = EventKind::device_lost, .status = status});
  residents_.give_up();
  return true;
}

void Executor::note_losses() noexcept {
  try {
    std::shared_ptr<Backend> device = device_if_known();
    if (!device || device->lost_devices() == losses_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(losses_mutex_);
    const std::vector<DeviceState> states = device->device_states();
    told_.resize(states.size());
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].lost.ok() || told_[i]) continue;
      told_[i] = true;
      ++losses_;
      monitor_->events().push({.kind = EventKind::device_lost, .status = states[i].lost});
    }
  } catch (const std::bad_alloc&) {
    // It is told after the next batch.
  }
}

void Executor::prefetch(const std::shared_ptr<Backend>& device, const SegmentList& segments,
                        uint64_t queries, bool insist) {
  std::vector<Residents::Copied> copied;
  if (Status status = residents_.prefetch(device, segments, queries, insist, &copied);
      !status.ok()) {
    (void)failed(status);
    return;
  }
  for (const Residents::Copied& c : copied)
    crossover_.measure(*host_, *device, *c.segment, *c.index);
}

Executor::Batch Executor::batch(const SegmentList& segments, uint64_t queries, bool insist) {
  Batch batch;
  for (const auto& segment : segments) batch.indexes_.push_back(segment->index());
  const uint64_t min_batch = std::max(min_queries, crossover());
  if (!insist && (kind_ == BackendKind::host || queries < min_batch || segments.empty()))
    return batch;
  std::shared_ptr<Backend> device = insist ? this->device() : device_for(queries);
  if (!device) return batch;
  prefetch(device, segments, queries, insist);
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

}  // namespace stride
