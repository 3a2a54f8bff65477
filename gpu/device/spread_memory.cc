#include "gpu/device/spread_memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "gpu/device/cuda_device.h"

namespace stride {

namespace {

// A function of the driver, which is no library that this one is linked with.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cuda_check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
             "look for a function of the driver");
  if (!found || result != cudaDriverEntryPointSuccess)
    throw CudaFailure(Status(StatusCode::unavailable, std::string("CUDA: no ") + name)
                          .with_remedy("install a newer driver"));
  return reinterpret_cast<Function*>(found);
}

struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity =
      driver_function<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemAddressReserve) reserve =
      driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free_addresses =
      driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver_function<decltype(cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = driver_function<decltype(cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access =
      driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess");

  static const Driver& get() {
    static const Driver driver;
    return driver;
  }
};

void check_driver(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const std::string message =
      std::string("CUDA: ") + what + ": error " + std::to_string(static_cast<int>(result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw CudaFailure(Status(StatusCode::resource_exhausted, message)
                          .with_remedy("lower the memory limit, or free memory of the device"));
  throw CudaFailure(Status(StatusCode::unavailable, message).with_remedy("use one device"));
}

// All memory of this kind that there is.
class Spreads {
 public:
  struct Spread {
    std::vector<uint64_t> ends;  // of the parts, in bytes
    std::vector<int> homes;      // the device of each part
    std::set<int> devices;
  };

  static Spreads& all() {
    static Spreads spreads;
    return spreads;
  }
  void add(const std::byte* begin, Spread spread) {
    std::lock_guard lock(mutex_);
    spreads_[begin] = std::move(spread);
    ++count_;
  }
  void remove(const std::byte* begin) {
    std::lock_guard lock(mutex_);
    count_ -= spreads_.erase(begin);
  }
  // Returns use(spread, offset) where p is to one of them.
  template <class T, class Use>
  T find(const void* p, T otherwise, const Use& use) {
    if (count_.load(std::memory_order_relaxed) == 0) return otherwise;
    const auto* at = static_cast<const std::byte*>(p);
    std::lock_guard lock(mutex_);
    auto behind = spreads_.upper_bound(at);
    if (behind == spreads_.begin()) return otherwise;
    const auto& [begin, spread] = *std::prev(behind);
    const auto offset = static_cast<uint64_t>(at - begin);
    return offset < spread.ends.back() ? use(spread, offset) : otherwise;
  }

 private:
  std::mutex mutex_;  // guards spreads_
  std::map<const std::byte*, Spread> spreads_;
  std::atomic<uint64_t> count_{0};
};

CUmemAllocationProp properties_of(const CudaDevice& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.number();
  return properties;
}

uint64_t granularity_of(const std::vector<CudaDevice*>& devices) {
  uint64_t granularity = 1;
  for (const CudaDevice* device : devices) {
    const CUmemAllocationProp properties = properties_of(*device);
    size_t of_device = 0;
    check_driver(
        Driver::get().granularity(&of_device, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "ask how large pages are");
    granularity = std::max<uint64_t>(granularity, of_device);
  }
  return granularity;
}

class SpreadMemory final : public BackendMemory {
 public:
  SpreadMemory(const std::vector<CudaDevice*>& devices, uint64_t bytes, uint64_t granularity)
      : devices_(devices) {
    try {
      make(bytes, granularity);
    } catch (...) {
      unmake();
      throw;
    }
  }
  ~SpreadMemory() override {
    Spreads::all().remove(data_);
    unmake();
  }

 private:
  struct Part {
    CudaDevice* device;
    uint64_t begin, bytes;
    bool is_counted = false, is_mapped = false;
  };

  void make(uint64_t bytes, uint64_t granularity) {
    reserved_ = (bytes + granularity - 1) / granularity * granularity;
    check_driver(Driver::get().reserve(&address_, reserved_, granularity, 0, 0),
                 "reserve addresses");
    for (uint64_t i = 0; i < devices_.size(); ++i) {
      auto edge = [&](uint64_t part) {
        if (part == devices_.size()) return reserved_;
        return bytes / devices_.size() * part / granularity * granularity;
      };
      map({devices_[i], edge(i), edge(i + 1) - edge(i)});
    }
    std::set<int> numbers = share();
    data_ = reinterpret_cast<std::byte*>(address_);
    size_ = bytes;
    Spreads::Spread spread{.ends = {}, .homes = {}, .devices = std::move(numbers)};
    for (const Part& part : parts_) {
      spread.ends.push_back(part.begin + part.bytes);
      spread.homes.push_back(part.device->number());
    }
    Spreads::all().add(data_, std::move(spread));
  }

  void map(const Part& part) {
    parts_.push_back(part);
    Part& made = parts_.back();
    made.device->take_budget(made.bytes);
    made.is_counted = true;
    const CUmemAllocationProp properties = properties_of(*made.device);
    CUmemGenericAllocationHandle handle = 0;
    check_driver(Driver::get().create(&handle, made.bytes, &properties, 0),
                 "allocate device memory");
    const CUresult mapped = Driver::get().map(address_ + made.begin, made.bytes, 0, handle, 0);
    // What is mapped lives on until it is unmapped.
    (void)Driver::get().release(handle);
    check_driver(mapped, "map device memory");
    made.is_mapped = true;
  }

  // Lets all devices use all of it, and returns their numbers.
  std::set<int> share() const {
    std::vector<CUmemAccessDesc> access;
    std::set<int> numbers;
    for (const CudaDevice* device : devices_) {
      if (!numbers.insert(device->number()).second) continue;
      CUmemAccessDesc of_device{};
      of_device.location = properties_of(*device).location;
      of_device.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      access.push_back(of_device);
    }
    check_driver(Driver::get().set_access(address_, reserved_, access.data(), access.size()),
                 "share the memory of devices");
    return numbers;
  }

  void unmake() {
    for (const Part& part : parts_) {
      if (part.is_mapped) (void)Driver::get().unmap(address_ + part.begin, part.bytes);
      if (part.is_counted) part.device->give_back_budget(part.bytes);
    }
    if (address_ != 0) (void)Driver::get().free_addresses(address_, reserved_);
  }

  const std::vector<CudaDevice*> devices_;
  CUdeviceptr address_ = 0;
  uint64_t reserved_ = 0;
  std::vector<Part> parts_;
};

}  // namespace

Result<std::unique_ptr<BackendMemory>> allocate_spread(const std::vector<CudaDevice*>& devices,
                                                       uint64_t bytes) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
    constexpr uint64_t min_pages = 4;  // of each part
    const Status not_worth(StatusCode::unavailable, "memory of some pages, or of no device");
    if (devices.empty() || std::count(devices.begin(), devices.end(), nullptr) > 0)
      return not_worth;
    const OnDevice on(*devices[0]);
    const uint64_t granularity = granularity_of(devices);
    if (bytes < min_pages * granularity * devices.size()) return not_worth;
    const Result<bool> reach = all_reach_each_other(devices);
    if (!reach.ok()) return reach.status();
    if (!*reach) return not_worth;
    return std::unique_ptr<BackendMemory>(
        std::make_unique<SpreadMemory>(devices, bytes, granularity));
  });
}

Result<bool> all_reach_each_other(const std::vector<CudaDevice*>& devices) {
  return cuda_guarded([&]() -> Result<bool> {
    for (const CudaDevice* a : devices)
      for (const CudaDevice* b : devices)
        if (a->number() != b->number() && !a->can_reach(b->number())) return false;
    return true;
  });
}

bool is_spread_over(const void* p, int device) {
  return Spreads::all().find(p, false, [&](const Spreads::Spread& spread, uint64_t) {
    return spread.devices.contains(device);
  });
}

std::optional<int> device_of_part(const void* p) {
  return Spreads::all().find(
      p, std::optional<int>(), [](const Spreads::Spread& spread, uint64_t offset) {
        const auto part = std::upper_bound(spread.ends.begin(), spread.ends.end(), offset);
        return std::optional<int>(spread.homes[static_cast<size_t>(part - spread.ends.begin())]);
      });
}

uint64_t bytes_to_border(const void* p) {
  return Spreads::all().find(p, UINT64_MAX, [](const Spreads::Spread& spread, uint64_t offset) {
    return *std::upper_bound(spread.ends.begin(), spread.ends.end(), offset) - offset;
  });
}

}  // namespace stride
