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

}  // namespace

std::unique_ptr<Sorter> make_first_sorter(DeviceSet& devices) {
  return std::make_unique<FirstSorter>(devices);
}
std::unique_ptr<Sets> make_first_sets(DeviceSet& devices) {
  return std::make_unique<FirstSets>(devices);
}

}  // namespace stride
