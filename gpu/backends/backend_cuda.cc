#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/device/cuda_device.h"
#include "gpu/device/cuda_transfer.h"
#include "gpu/match/cuda_longest_prefix.h"
#include "gpu/plan/tree_planner.h"
#include "gpu/scatter/cuda_scatter.h"
#include "gpu/set/cuda_sets.h"
#include "gpu/sort/cuda_sorter.h"
#include "gpu/tree/cuda_index.h"
#include "gpu/tree/cuda_tree_index.h"
#include "storage/status.h"

namespace stride {

namespace {

class CudaMemory final : public BackendMemory {
 public:
  CudaMemory(CudaDevice& device, uint64_t bytes) {
    CudaStream stream(device);
    memory_ = CudaArray<std::byte>(device, stream, bytes);
    memory_.clear_padding();
    stream.wait();
    memory_.outlive_stream();
    data_ = memory_.data();
    size_ = bytes;
  }

 private:
  CudaArray<std::byte> memory_;
};

class CudaHostMemory final : public BackendMemory {
 public:
  explicit CudaHostMemory(uint64_t bytes) : memory_(bytes) {
    data_ = memory_.data();
    size_ = bytes;
  }

 private:
  PinnedMemory memory_;
};

// Throws CudaFailure (unavailable) where there is no such device, or no code for it.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options)
      : host_(options.host ? options.host : Backend::host(options.host_threads)),
        device_(options.device, options.memory_limit, options.fault_group),
        transfer_(device_, *host_) {
    OnDevice on(device_);
    check_kernels();
    for (int peer : options.peers)
      if (peer != options.device) device_.reach(peer);
  }

  Sorter& sorter() override { return *sorter_; }
  TreeIndex& tree_index() override { return *tree_index_; }
  LongestPrefix& longest_prefix() override { return *longest_prefix_; }
  Scatter& scatter() override { return *scatter_; }
  Sets& sets() override { return *sets_; }

  std::string name() const override {
    return "cuda:" + std::to_string(device_.number()) + " (" + device_.model() + ")";
  }
  unsigned threads() const override { return host_->threads(); }
  bool has_device() const override { return true; }
  CudaDevice* cuda_device() override { return &device_; }

  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      return std::unique_ptr<BackendMemory>(std::make_unique<CudaMemory>(device_, bytes));
    });
  }

  Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      OnDevice on(device_);
      return std::unique_ptr<BackendMemory>(std::make_unique<CudaHostMemory>(bytes));
    });
  }

  bool is_on_device(const void* p) const override { return device_.owns(p); }
  Status copy(void* to, const void* from, uint64_t bytes) override {
    return transfer_.copy(to, from, bytes);
  }

  Status measure_limits(uint64_t table_bytes, BackendLimits* limits) override {
    return cuda_guarded([&] {
      *limits = {};
      measure_memory_cuda(device_, std::max<uint64_t>(table_bytes, 1 << 20), limits);
      return Status();
    });
  }

  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    host_->parallel_for(n, grain, body);
  }

 private:
  std::shared_ptr<Backend> host_;
  CudaDevice device_;
  CudaTransfer transfer_;
  CudaContext context_{device_, transfer_};
  std::unique_ptr<Sorter> sorter_ = make_cuda_sorter(context_, host_->sorter());
  std::unique_ptr<TreeIndex> tree_index_ =
      make_cuda_tree_index(context_, host_->tree_index(), with_strides);
  std::unique_ptr<LongestPrefix> longest_prefix_ =
      make_cuda_longest_prefix(context_, host_->longest_prefix());
  std::unique_ptr<Scatter> scatter_ = make_cuda_scatter(context_, host_->scatter());
  std::unique_ptr<Sets> sets_ = make_cuda_sets(context_, host_->sets());
};

}  // namespace

Result<std::vector<DeviceInfo>> Backend::list_devices() {
  return cuda_guarded([&]() -> Result<std::vector<DeviceInfo>> {
    int count = 0;
    cuda_check(cudaGetDeviceCount(&count), "look for devices");
    std::vector<DeviceInfo> devices;
    for (int number = 0; number < count; ++number) {
      cudaDeviceProp properties{};
      cuda_check(cudaGetDeviceProperties(&properties, number), "read the device's properties");
      devices.push_back({number, properties.name, properties.totalGlobalMem});
    }
    return devices;
  });
}

Result<std::unique_ptr<Backend>> Backend::cuda(const CudaOptions& options) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<Backend>> {
    return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(options));
  });
}

}  // namespace stride
