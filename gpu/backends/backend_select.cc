#include "gpu/backend.h"
#include "gpu/device/device_faults.h"
#include "gpu/device/spread_memory.h"
#include "gpu/host/no_device.h"
#include "gpu/several/range_split.h"
#include "gpu/several/vector_split.h"

namespace stride {

#if !defined(STRIDE_HAVE_CUDA)
Result<std::unique_ptr<Backend>> Backend::cuda(const CudaOptions&) {
  return Status(StatusCode::unavailable, "this build has no CUDA backend")
      .with_remedy("build where nvcc is installed, or use the host backend");
}

Result<std::vector<DeviceInfo>> Backend::list_devices() { return cuda().status(); }

Result<std::unique_ptr<BackendMemory>> allocate_spread(const std::vector<CudaDevice*>&, uint64_t) {
  return no_device();
}
Result<std::unique_ptr<RangeSplit>> split_by_range(CudaDevice&, const KeyColumn&,
                                                   const std::vector<std::string>&, SplitFor,
                                                   const RoomOfDevice&) {
  return no_device();
}
Result<std::unique_ptr<VectorSplit>> split_vectors_on(CudaDevice&, const KeyColumn&,
                                                      const VectorHash&, size_t, bool,
                                                      const RoomOfDevice&) {
  return no_device();
}
Result<std::unique_ptr<IdSplit>> split_ids_on(CudaDevice&, std::span<const uint64_t>, uint32_t,
                                              size_t, const RoomOfDevice&) {
  return no_device();
}
Result<bool> all_reach_each_other(const std::vector<CudaDevice*>&) { return false; }
uint64_t bytes_to_border(const void*) { return UINT64_MAX; }

void DeviceFaults::fail_call(uint64_t, DeviceFault, uint32_t) {}
void DeviceFaults::clear() {}
uint64_t DeviceFaults::calls() { return 0; }
#endif

std::unique_ptr<Backend> Backend::automatic(unsigned threads) {
  auto device = cuda({.host_threads = threads});
  return device.ok() ? std::move(*device) : host(threads);
}

}  // namespace stride
