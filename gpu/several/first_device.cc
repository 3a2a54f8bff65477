#include "gpu/several/first_device.h"

#include <utility>

namespace stride {

namespace {

class FirstSorter final : public Sorter {
 public:
  explicit FirstSorter(DeviceSet& devices) : devices_(devices) {}
  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    return devices_.run_on_first(no_device_number, [&](size_t device) {
      return devices_[device].sorter().sort(chunks, sorted);
    });
  }

 private:
  DeviceSet& devices_;
};

class FirstSets final : public Sets {
 public:
  explicit FirstSets(DeviceSet& devices) : devices_(devices) {}
  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    std::unique_ptr<VectorSet> set;
    STRIDE_TRY(devices_.run_on_first(no_device_number, [&](size_t device) {
      return keep(devices_[device].sets().make_vector_set(options), &set);
    }));
    return set;
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override {
    std::unique_ptr<ByteSet> set;
    STRIDE_TRY(devices_.run_on_first(no_device_number, [&](size_t device) {
      return keep(devices_[device].sets().make_byte_set(), &set);
    }));
    return set;
  }

 private:
  template <class T>
  static Status keep(Result<std::unique_ptr<T>> made, std::unique_ptr<T>* to) {
    if (made.ok()) *to = std::move(*made);
    return made.status();
  }

  DeviceSet& devices_;
};

class FirstScatter final : public Scatter {
 public:
  explicit FirstScatter(DeviceSet& devices) : devices_(devices) {}

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
  // Where a device fails some of the sums may have been changed, and no other one can go on.
  Status apply_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                       const ScatterOptions& options, ScatterReport* report) override {
    size_t device = devices_.home_of(into.data);
    if (device == no_device_number) device = devices_.home_of(targets.data);
    if (device == no_device_number) device = devices_.home_of(sources.data);
    if (device == no_device_number) device = devices_.first();
    Status status = devices_[device].scatter().apply(sources, targets, into, options, report);
    if (is_loss(status)) devices_.lose(device, status);
    return status;
  }

  DeviceSet& devices_;
};

}  // namespace

std::unique_ptr<Sorter> make_first_sorter(DeviceSet& devices) {
  return std::make_unique<FirstSorter>(devices);
}
std::unique_ptr<Scatter> make_first_scatter(DeviceSet& devices) {
  return std::make_unique<FirstScatter>(devices);
}
std::unique_ptr<Sets> make_first_sets(DeviceSet& devices) {
  return std::make_unique<FirstSets>(devices);
}

}  // namespace stride
