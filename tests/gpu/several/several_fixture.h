// Backends over several devices: fakes, devices that share one real device, and all real ones.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/device/device_faults.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"

namespace stride::test {

// Small, so that few queries make several shares.
inline constexpr SeveralOptions small_shares{.min_share = 64, .min_device_share = 64};

struct SeveralKind {
  const char* name;
  size_t devices;
  enum class Of { fakes, one_device, all_devices } of;
};

inline constexpr SeveralKind several_kinds[] = {
    {"1 fake", 1, SeveralKind::Of::fakes},
    {"2 fakes", 2, SeveralKind::Of::fakes},
    {"4 fakes", 4, SeveralKind::Of::fakes},
    {"1 of one device", 1, SeveralKind::Of::one_device},
    {"2 of one device", 2, SeveralKind::Of::one_device},
    {"4 of one device", 4, SeveralKind::Of::one_device},
    {"all devices", 0, SeveralKind::Of::all_devices},
};

// Devices of a kind; fewer than two, or none, where the machine does not have them.
class SeveralDevices {
 public:
  static constexpr uint64_t fake_memory = uint64_t{1} << 30;

  // memory: of each device, as Backend::cuda() takes it.
  explicit SeveralDevices(const SeveralKind& kind, uint64_t memory = uint64_t{2} << 30) {
    missing_ = make(kind, memory);
    if (!missing_.empty()) devices_.clear();
  }
  ~SeveralDevices() { DeviceFaults::clear(); }

  // Why there are none; empty where there are.
  const std::string& missing() const { return missing_; }
  std::unique_ptr<Backend> backend(const SeveralOptions& options = small_shares) const {
    auto made = Backend::several(devices_, options);
    REQUIRE_OK(made);
    return std::move(*made);
  }
  // One that lays indexes over the devices: fakes, for these have no room for a copy.
  std::unique_ptr<Backend> backend_in_parts() const {
    for (const auto& fake : fakes_) fake->set_max_keys(700);
    SeveralOptions options = small_shares;
    options.in_parts = fakes_.empty();
    return backend(options);
  }
  size_t size() const { return devices_.size(); }
  const std::vector<std::shared_ptr<Backend>>& devices() const { return devices_; }
  const std::vector<std::shared_ptr<FakeDevice>>& fakes() const { return fakes_; }

  // The n-th call to a device fails from now on; 0: none. One at a time.
  void fail_call(size_t device, uint64_t n, StatusCode code) const {
    if (!fakes_.empty()) return fakes_[device]->fail_call(n, code);
    DeviceFaults::fail_call(
        n, code == StatusCode::io_error ? DeviceFault::lost : DeviceFault::out_of_memory,
        static_cast<uint32_t>(device));
  }
  // Since fail_call().
  uint64_t calls(size_t device) const {
    return fakes_.empty() ? DeviceFaults::calls() : fakes_[device]->calls();
  }
  void work_again() const {
    for (const auto& fake : fakes_) fake->fail_call(0, StatusCode::io_error);
    DeviceFaults::clear();
  }

 private:
  // Why there are none.
  std::string make(const SeveralKind& kind, uint64_t memory) {
    using Of = SeveralKind::Of;
    if (kind.of == Of::all_devices) {
      auto there = Backend::list_devices();
      if (!there.ok() || there->size() < 2) return "needs two devices";
      for (const DeviceInfo& device : *there) numbers_.push_back(device.number);
    } else {
      numbers_.resize(kind.devices);
    }
    std::shared_ptr<Backend> host = Backend::host(3);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (kind.of == Of::fakes) {
        fakes_.push_back(std::make_shared<FakeDevice>(fake_memory, "fake " + std::to_string(i)));
        devices_.push_back(fakes_.back());
        continue;
      }
      auto made = Backend::cuda({.device = numbers_[i],
                                 .memory_limit = memory,
                                 .host = host,
                                 .peers = numbers_,
                                 .fault_group = static_cast<uint32_t>(i)});
      if (!made.ok()) return made.status().to_string();
      devices_.push_back(std::move(*made));
    }
    return "";
  }

  std::string missing_;
  std::vector<int> numbers_;
  std::vector<std::shared_ptr<FakeDevice>> fakes_;
  std::vector<std::shared_ptr<Backend>> devices_;
};

class SeveralTest {
 protected:
  SeveralTest() {
    if (!devices_.missing().empty()) SKIP(devices_.missing());
    backend_ = devices_.backend();
  }

  const SeveralKind kind_ =
      GENERATE(from_range(std::begin(several_kinds), std::end(several_kinds)));
  RunsWith name_{kind_.name};
  SeveralDevices devices_{kind_};
  std::unique_ptr<Backend> backend_;
};

}  // namespace stride::test
