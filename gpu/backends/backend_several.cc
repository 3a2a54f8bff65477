#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/device/spread_memory.h"
#include "gpu/several/device_set.h"
#include "gpu/several/first_device.h"
#include "gpu/several/helpers.h"
#include "gpu/several/several_matches.h"
#include "gpu/several/several_scatter.h"
#include "gpu/several/several_sets.h"
#include "gpu/several/several_trees.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

std::string text_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " + ") + name;
  return text;
}

class SeveralBackend final : public Backend {
 public:
  SeveralBackend(std::vector<std::shared_ptr<Backend>> devices, const SeveralOptions& options)
      : devices_(std::move(devices), options) {}

  Sorter& sorter() override { return *sorter_; }
  TreeIndex& tree_index() override { return *trees_; }
  LongestPrefix& longest_prefix() override { return *matches_; }
  Scatter& scatter() override { return *scatter_; }
  Sets& sets() override { return *sets_; }

  std::string name() const override {
    std::vector<std::string> working, lost;
    for (const DeviceState& device : devices_.states())
      (device.lost.ok() ? working : lost).push_back(device.name);
    return text_of(working) + (lost.empty() ? "" : "; lost: " + text_of(lost));
  }
  unsigned threads() const override { return devices_[0].threads(); }
  bool has_device() const override { return true; }
  std::vector<DeviceState> device_states() const override { return devices_.states(); }
  uint64_t lost_devices() const override { return devices_.lost(); }

  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    if (devices_.lost() == 0) {
      std::vector<CudaDevice*> all;
      for (size_t i = 0; i < devices_.size(); ++i) all.push_back(devices_[i].cuda_device());
      auto spread = allocate_spread(all, bytes);
      if (spread.status().code() == StatusCode::resource_exhausted && devices_.drop_rooms())
        spread = allocate_spread(all, bytes);
      if (spread.ok()) return spread;
    }
    return devices_.make_on_first([&](Backend& device) { return device.allocate(bytes); });
  }
  Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) override {
    return devices_.make_on_first([&](Backend& device) { return device.allocate_host(bytes); });
  }
  bool is_on_device(const void* p) const override {
    return devices_.home_of(p) != no_device_number;
  }
  Status copy(void* to, const void* from, uint64_t bytes) override {
    auto* target = static_cast<std::byte*>(to);
    const auto* source = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      const uint64_t part = std::min({bytes, bytes_to_border(target), bytes_to_border(source)});
      STRIDE_TRY(copy_part(target, source, part));
      target += part;
      source += part;
      bytes -= part;
    }
    return {};
  }
  Status measure_limits(uint64_t table_bytes, BackendLimits* limits) override {
    return devices_.run_on_first(no_device_number, [&](size_t device) {
      return devices_[device].measure_limits(table_bytes, limits);
    });
  }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    devices_[0].parallel_for(n, grain, body);
  }

 private:
  // Between memory that lies on one device each, or in the host's.
  Status copy_part(void* to, const void* from, uint64_t bytes) {
    const size_t home = devices_.home_of(to);
    return devices_.run_on_first(
        home != no_device_number ? home : devices_.home_of(from),
        [&](size_t device) { return devices_[device].copy(to, from, bytes); });
  }

  DeviceSet devices_;
  std::unique_ptr<Sorter> sorter_ = make_first_sorter(devices_);
  std::unique_ptr<TreeIndex> trees_ = make_several_trees(devices_);
  std::unique_ptr<LongestPrefix> matches_ = make_several_matches(devices_);
  std::unique_ptr<Scatter> scatter_ = make_several_scatter(devices_);
  std::unique_ptr<Sets> sets_ = make_several_sets(devices_);
};

// invalid_argument: one of the numbers comes twice, or is none of the devices'.
Status check_numbers(const std::vector<int>& numbers, const std::vector<DeviceInfo>& devices) {
  for (int number : numbers) {
    const bool is_there = std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& info) {
      return info.number == number;
    });
    if (is_there) continue;
    return Status::invalid("device " + std::to_string(number) + " is not there: this machine has " +
                           std::to_string(devices.size()))
        .with_remedy("name devices from 0 to " + std::to_string(devices.size() - 1) +
                     ", or none for all that help");
  }
  return {};
}

Status check_once(const std::vector<int>& numbers) {
  std::set<int> seen;
  for (int number : numbers)
    if (!seen.insert(number).second)
      return Status::invalid("device " + std::to_string(number) + " is named twice")
          .with_remedy("name each device once");
  return {};
}

// Those that are named or, where none is, the first and all others of its model.
std::vector<int> chosen(const std::vector<int>& named, const std::vector<DeviceInfo>& devices) {
  if (!named.empty()) return named;
  std::vector<int> numbers;
  for (const DeviceInfo& device : devices)
    if (device.model == devices[0].model) numbers.push_back(device.number);
  return numbers;
}

}  // namespace

Status Backend::check_devices(const std::vector<int>& numbers) {
  if (numbers.empty()) return {};
  STRIDE_TRY(check_once(numbers));
  auto devices = list_devices();
  if (!devices.ok())
    return Status::invalid("device " + std::to_string(numbers[0]) +
                           " is not there: " + devices.status().message())
        .with_remedy("name no devices, or use the host backend");
  return check_numbers(numbers, *devices);
}

Result<std::unique_ptr<Backend>> Backend::several(std::vector<std::shared_ptr<Backend>> devices,
                                                  const SeveralOptions& options) {
  return no_throw([&]() -> Result<std::unique_ptr<Backend>> {
    if (devices.empty())
      return Status::invalid("a backend of no devices").with_remedy("give one device at least");
    for (const auto& device : devices)
      if (!device || !device->has_device())
        return Status::invalid("a backend without a device among several")
            .with_remedy("give backends of devices alone");
    return std::unique_ptr<Backend>(std::make_unique<SeveralBackend>(std::move(devices), options));
  });
}

Result<std::unique_ptr<Backend>> Backend::devices(const DevicesOptions& options) {
  return no_throw([&]() -> Result<std::unique_ptr<Backend>> {
    STRIDE_TRY(check_once(options.devices));
    auto there = list_devices();
    if (!there.ok()) return there.status();
    STRIDE_TRY(check_numbers(options.devices, *there));
    const std::vector<int> numbers = chosen(options.devices, *there);
    CudaOptions one{.memory_limit = options.memory_limit,
                    .host = options.host,
                    .host_threads = options.host_threads};
    if (numbers.size() < 2) {
      one.device = numbers.empty() ? 0 : numbers[0];
      return cuda(one);
    }
    if (!one.host) one.host = host(options.host_threads);
    one.peers = numbers;
    std::vector<std::shared_ptr<Backend>> devices(numbers.size());
    std::vector<Status> made(numbers.size());
    Helpers helpers;  // each takes some 0.3 s
    helpers.run_each(numbers.size(), [&](uint64_t i) {
      CudaOptions mine = one;
      mine.device = numbers[i];
      auto device = cuda(mine);
      if (device.ok()) devices[i] = std::move(*device);
      made[i] = device.status();
    });
    for (Status& status : made)
      if (!status.ok()) return std::move(status);
    return several(std::move(devices), options.cut);
  });
}

}  // namespace stride
