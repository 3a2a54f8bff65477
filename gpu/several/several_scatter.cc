#include "gpu/several/several_scatter.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/no_throw.h"

namespace stride {

namespace {

constexpr uint64_t max_shared_sums = uint64_t{1} << 24;
constexpr uint64_t bytes_a_sum_byte = 16;  // of sources, at least, where they are shared out

// What a device has ready for sums of its own. Immutable.
struct SumsKit {
  NumberType type = NumberType::none;
  uint64_t sums = 0, copies = 0;
  // Of each copy of T, one after the other: 0, 1, ..., sums - 1.
  std::unique_ptr<BackendMemory> targets;
  // A T to which nothing was added yet.
  std::unique_ptr<BackendMemory> empty;

  Indexes targets_of(uint64_t number) const {
    return {targets->data(), number * sums, sizeof(uint32_t)};
  }
};

// What leaves every number as it is when it is added: of floats -0, for 0 makes 0 of -0.
std::vector<std::byte> empty_sums(NumberType type, uint64_t bytes) {
  std::vector<std::byte> empty(bytes);
  const uint32_t width = width_of(type);
  if (type == NumberType::f32 || type == NumberType::f64)
    for (uint64_t at = width - 1; at < bytes; at += width) empty[at] = std::byte{0x80};
  return empty;
}

// The kit that a device was last asked for. Thread-safe.
class SumsKits {
 public:
  Result<std::shared_ptr<const SumsKit>> get(Backend& device, const MutableNumbers& into,
                                             uint64_t copies) {
    std::lock_guard lock(mutex_);
    if (!last_ || last_->type != into.type || last_->sums != into.size || last_->copies != copies) {
      auto kit = std::make_shared<SumsKit>();
      kit->type = into.type;
      kit->sums = into.size;
      kit->copies = copies;
      std::vector<uint32_t> targets(into.size * copies);
      for (uint64_t i = 0; i < targets.size(); ++i)
        targets[i] = static_cast<uint32_t>(i % into.size);
      STRIDE_TRY(put(device, targets.data(), targets.size() * sizeof(uint32_t), &kit->targets));
      const std::vector<std::byte> empty = empty_sums(into.type, into.size * width_of(into.type));
      STRIDE_TRY(put(device, empty.data(), empty.size(), &kit->empty));
      last_ = std::move(kit);
    }
    return last_;
  }

 private:
  static Status put(Backend& device, const void* from, uint64_t bytes,
                    std::unique_ptr<BackendMemory>* to) {
    auto made = device.allocate(bytes);
    if (!made.ok()) return made.status();
    STRIDE_TRY(device.copy((*made)->data(), from, bytes));
    *to = std::move(*made);
    return {};
  }

  std::mutex mutex_;
  std::shared_ptr<const SumsKit> last_;
};

// What one share of the sources has added up to, in the memory of the device that did it.
struct SharedSums {
  uint64_t first_source = 0;
  std::unique_ptr<BackendMemory> sums;
  ScatterReport report;
};

class SeveralScatter final : public Scatter {
 public:
  explicit SeveralScatter(DeviceSet& devices) : devices_(devices), kits_(devices.size()) {}

  Result<std::unique_ptr<PreparedScatter>> prepare(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    std::unique_ptr<PreparedScatter> prepared;
    STRIDE_TRY(devices_.run_on_first(devices_.home_of(targets.data), [&](size_t device) {
      auto made = devices_[device].scatter().prepare(targets, target_count, out_of_range);
      if (made.ok()) prepared = std::move(*made);
      return made.status();
    }));
    return prepared;
  }

 private:
  struct Job {
    const Numbers& sources;
    const Indexes& targets;
    const MutableNumbers& into;
    const ScatterOptions& options;
  };

  Status apply_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                       const ScatterOptions& options, ScatterReport* report) override {
    const Job job{sources, targets, into, options};
    const SharedBatch batch = batch_of(job);
    // A device that fails before T has changed is left out, and all is done again.
    for (size_t tries = 0; tries < devices_.size() && devices_.shares(batch) > 1; ++tries) {
      std::vector<SharedSums> shares;
      Status status = add_shares(job, batch, &shares);
      if (status.ok()) {
        const ScatterReport all = report_of(shares);
        // The device alone says which source it is.
        if (all.out_of_range > 0 && options.out_of_range == OutOfRange::error) break;
        bool is_changed = false;
        status = add_to_all(job, shares, &is_changed);
        if (status.ok()) *report = all;
        if (status.ok() || is_changed) return status;
      }
      if (status.code() == StatusCode::resource_exhausted) break;
      if (!is_loss(status)) return status;
    }
    return apply_on_one(job, report);
  }
  SharedBatch batch_of(const Job& job) const;
  // The sums of all shares, each on the device that has added them.
  Status add_shares(const Job& job, const SharedBatch& batch, std::vector<SharedSums>* shares);
  Result<SharedSums> add_share(const Job& job, Share share, size_t device);
  // Adds the sums of the shares to T. *is_changed: T may have been changed.
  Status add_to_all(const Job& job, const std::vector<SharedSums>& shares, bool* is_changed);
  Status apply_on_one(const Job& job, ScatterReport* report);
  static ScatterReport report_of(const std::vector<SharedSums>& shares);

  DeviceSet& devices_;
  std::vector<SumsKits> kits_;  // of each device
};

SharedBatch SeveralScatter::batch_of(const Job& job) const {
  const ScatterOptions& options = job.options;
  const bool is_float = job.into.type == NumberType::f32 || job.into.type == NumberType::f64;
  const uint64_t source_bytes =
      job.sources.size * (job.targets.width + (job.sources.data ? width_of(job.sources.type) : 0));
  const bool is_divisible =
      !options.stream && options.method == ScatterMethod::automatic && job.into.size > 0 &&
      !(is_float && options.operation == ScatterOperation::add &&
        options.mode == ScatterMode::reproducible) &&
      !devices_.is_on_one(job.targets.data) && !devices_.is_on_one(job.sources.data) &&
      job.into.size <= max_shared_sums &&
      job.into.size * width_of(job.into.type) * bytes_a_sum_byte <= source_bytes;
  size_t home = devices_.home_of(job.targets.data);
  if (home == no_device_number) home = devices_.home_of(job.sources.data);
  return {.size = job.sources.size, .divisible = is_divisible, .home = home};
}

Status SeveralScatter::add_shares(const Job& job, const SharedBatch& batch,
                                  std::vector<SharedSums>* shares) {
  std::mutex mutex;  // guards *shares
  return devices_.run(batch, [&](size_t device, Share share) {
    auto added = add_share(job, share, device);
    if (!added.ok()) return added.status();
    std::lock_guard lock(mutex);
    shares->push_back(std::move(*added));
    return Status();
  });
}

Result<SharedSums> SeveralScatter::add_share(const Job& job, Share share, size_t device) {
  Backend& on = devices_[device];
  const uint64_t bytes = job.into.size * width_of(job.into.type);
  auto kit = kits_[device].get(on, job.into, devices_.size());
  if (!kit.ok()) return kit.status();
  auto made = on.allocate(bytes);
  if (!made.ok()) return made.status();
  // The least of T and of the sources may be taken of T any number of times.
  const bool is_sum = job.options.operation == ScatterOperation::add;
  STRIDE_TRY(on.copy((*made)->data(), is_sum ? (*kit)->empty->data() : job.into.data, bytes));
  Numbers sources = job.sources;
  sources.size = share.count;
  if (sources.data)
    sources.data =
        static_cast<const std::byte*>(sources.data) + share.first * width_of(sources.type);
  const Indexes targets{
      static_cast<const std::byte*>(job.targets.data) + share.first * job.targets.width,
      share.count, job.targets.width};
  ScatterOptions options = job.options;
  options.out_of_range = OutOfRange::count;
  SharedSums added{share.first, std::move(*made), {}};
  STRIDE_TRY(on.scatter().apply(sources, targets,
                                {job.into.type, added.sums->data(), job.into.size}, options,
                                &added.report));
  return added;
}

ScatterReport SeveralScatter::report_of(const std::vector<SharedSums>& shares) {
  ScatterReport all;
  for (const SharedSums& share : shares) {
    if (share.report.out_of_range == 0) continue;
    all.out_of_range += share.report.out_of_range;
    all.first_out_of_range =
        std::min(all.first_out_of_range, share.first_source + share.report.first_out_of_range);
  }
  return all;
}

Status SeveralScatter::add_to_all(const Job& job, const std::vector<SharedSums>& shares,
                                  bool* is_changed) {
  size_t device = devices_.home_of(job.into.data);
  if (device == no_device_number) device = devices_.first();
  Backend& on = devices_[device];
  const uint64_t bytes = job.into.size * width_of(job.into.type);
  auto add = [&]() -> Status {
    auto kit = kits_[device].get(on, job.into, devices_.size());
    if (!kit.ok()) return kit.status();
    auto all = on.allocate(bytes * shares.size());
    if (!all.ok()) return all.status();
    for (size_t i = 0; i < shares.size(); ++i)
      STRIDE_TRY(on.copy((*all)->data() + i * bytes, shares[i].sums->data(), bytes));
    *is_changed = true;
    return on.scatter().apply({job.into.type, (*all)->data(), job.into.size * shares.size()},
                              (*kit)->targets_of(shares.size()), job.into,
                              {.operation = job.options.operation});
  };
  Status status = no_throw(add);
  if (is_loss(status)) devices_.lose(device, status);
  return status;
}

// Where a device fails some of the sums may have been changed, and no other one can go on.
Status SeveralScatter::apply_on_one(const Job& job, ScatterReport* report) {
  size_t device = devices_.home_of(job.into.data);
  if (device == no_device_number) device = devices_.home_of(job.targets.data);
  if (device == no_device_number) device = devices_.home_of(job.sources.data);
  if (device == no_device_number) device = devices_.first();
  Status status =
      devices_[device].scatter().apply(job.sources, job.targets, job.into, job.options, report);
  if (is_loss(status)) devices_.lose(device, status);
  return status;
}

}  // namespace

std::unique_ptr<Scatter> make_several_scatter(DeviceSet& devices) {
  return std::make_unique<SeveralScatter>(devices);
}

}  // namespace stride
