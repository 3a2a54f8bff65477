#include "gpu/several/device_set.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "storage/no_throw.h"

namespace stride {

DeviceSet::DeviceSet(std::vector<std::shared_ptr<Backend>> devices, const SeveralOptions& options)
    : devices_(std::move(devices)), options_(options), lost_(devices_.size()) {
  for (const auto& device : devices_)
    rooms_.push_back(std::make_unique<RoomCache>(*device, options_.kept_bytes));
}

std::vector<size_t> DeviceSet::working() const {
  std::vector<size_t> devices;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < lost_.size(); ++i)
    if (lost_[i].ok()) devices.push_back(i);
  return devices;
}

size_t DeviceSet::first() const {
  std::lock_guard lock(mutex_);
  auto works = std::find_if(lost_.begin(), lost_.end(), [](const Status& s) { return s.ok(); });
  return works == lost_.end() ? 0 : static_cast<size_t>(works - lost_.begin());
}

std::vector<DeviceState> DeviceSet::states() const {
  std::vector<DeviceState> states;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < devices_.size(); ++i) states.push_back({devices_[i]->name(), lost_[i]});
  return states;
}

size_t DeviceSet::home_of(const void* p) const {
  size_t home = no_device_number;
  if (!p) return home;
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i]->is_on_device(p)) continue;
    if (works(i)) return i;
    home = i;
  }
  return home;
}

bool DeviceSet::is_on_one(const void* p) const {
  return p && std::count_if(devices_.begin(), devices_.end(),
                            [&](const auto& device) { return device->is_on_device(p); }) == 1;
}

void DeviceSet::lose(size_t device, const Status& why) {
  Status named = Status(why.code(), devices_[device]->name() + ": " + why.message())
                     .with_remedy("the other devices go on; reopen the database to use it again");
  std::lock_guard lock(mutex_);
  if (!lost_[device].ok()) return;
  lost_[device] = std::move(named);
  losses_.fetch_add(1, std::memory_order_release);
}

Status DeviceSet::no_device_left() const {
  std::lock_guard lock(mutex_);
  const bool all_lost =
      std::none_of(lost_.begin(), lost_.end(), [](const Status& s) { return s.ok(); });
  if (all_lost) return lost_[0];
  return Status(StatusCode::unavailable, "no device has all that a batch needs")
      .with_remedy("use the calls whose results may lie in host memory");
}

std::vector<size_t> DeviceSet::candidates(const SharedBatch& batch) const {
  std::vector<size_t> devices = working();
  if (batch.has) std::erase_if(devices, [&](size_t device) { return !batch.has(device); });
  return devices;
}

std::vector<Share> DeviceSet::cut(const SharedBatch& batch, size_t devices) const {
  constexpr uint64_t unit = 64;
  const uint64_t least = std::max<uint64_t>(
      1, batch.home == no_device_number ? options_.min_share : options_.min_device_share);
  const uint64_t count = batch.divisible ? std::clamp<uint64_t>(batch.size / least, 1, devices) : 1;
  auto edge = [&](uint64_t i) {
    const uint64_t even = batch.size / count * i + batch.size % count * i / count;
    return i == count ? batch.size : std::min(batch.size, (even + unit - 1) / unit * unit);
  };
  std::vector<Share> shares;
  for (uint64_t i = 0; i < count; ++i)
    if (edge(i) < edge(i + 1) || i == 0) shares.push_back({edge(i), edge(i + 1) - edge(i)});
  return shares;
}

Status DeviceSet::run_share(const SharedBatch& batch, size_t device, Share share,
                            const ShareWork& work) {
  for (;;) {
    Status status = with_all_room(device, [&] { return work(device, share); });
    if (!is_loss(status)) return status;
    // Where the queries lie on a device that has failed, another one that cannot read them is not
    // to blame.
    if (batch.home != no_device_number && batch.home != device && !works(batch.home)) return status;
    lose(device, status);
    const std::vector<size_t> left = candidates(batch);
    if (left.empty()) return status;
    device = left[turn_.fetch_add(1, std::memory_order_relaxed) % left.size()];
  }
}

Status DeviceSet::run(const SharedBatch& batch, const ShareWork& work) {
  return no_throw([&]() -> Status {
    const std::vector<size_t> devices = candidates(batch);
    if (devices.empty()) return no_device_left();
    const std::vector<Share> shares = cut(batch, devices.size());
    const bool at_home = shares.size() == 1 &&
                         std::find(devices.begin(), devices.end(), batch.home) != devices.end();
    if (at_home) return run_share(batch, batch.home, shares[0], work);
    // The shares of a batch that has one for each device are in the order of the devices.
    const size_t turn = shares.size() == devices.size()
                            ? 0
                            : turn_.fetch_add(1, std::memory_order_relaxed) % devices.size();
    auto device_of = [&](size_t share) { return devices[(turn + share) % devices.size()]; };
    if (shares.size() == 1) return run_share(batch, device_of(0), shares[0], work);
    return run_each(shares.size(),
                    [&](uint64_t i) { return run_share(batch, device_of(i), shares[i], work); });
  });
}

Status DeviceSet::run_each(uint64_t n, const std::function<Status(uint64_t)>& work) {
  return no_throw([&]() -> Status {
    std::vector<Status> results(n);
    helpers_.run_each(n, [&](uint64_t i) { results[i] = no_throw([&] { return work(i); }); });
    for (Status& status : results)
      if (!status.ok()) return std::move(status);
    return {};
  });
}

Status DeviceSet::run_on_all(const std::function<Status(size_t device)>& work) {
  return no_throw([&]() -> Status {
    const std::vector<size_t> devices = working();
    if (devices.empty()) return no_device_left();
    std::vector<Status> results(devices.size());
    helpers_.run_each(devices.size(), [&](uint64_t i) {
      results[i] =
          no_throw([&] { return with_all_room(devices[i], [&] { return work(devices[i]); }); });
    });
    size_t failed = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      if (results[i].ok()) continue;
      if (!is_loss(results[i])) return std::move(results[i]);
      lose(devices[i], results[i]);
      ++failed;
    }
    return failed == devices.size() ? no_device_left() : Status();
  });
}

Status DeviceSet::run_on_first(size_t home, const std::function<Status(size_t device)>& work) {
  SharedBatch batch{.size = 1, .divisible = false, .home = home};
  if (home == no_device_number) batch.home = first();
  return run(batch, [&](size_t device, Share) { return work(device); });
}

}  // namespace stride
