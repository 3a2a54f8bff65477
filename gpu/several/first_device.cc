#include "gpu/several/first_device.h"

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

}  // namespace

std::unique_ptr<Sorter> make_first_sorter(DeviceSet& devices) {
  return std::make_unique<FirstSorter>(devices);
}

}  // namespace stride
