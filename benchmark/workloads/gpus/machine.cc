#include "benchmark/workloads/gpus/machine.h"

#include <algorithm>
#include <thread>

#include "benchmark/harness/stopwatch.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t limit_table_bytes = 1 << 28;
constexpr uint64_t link_bytes = 1 << 29;

// From one device's memory to another one's, the fastest of some copies.
Status measure_link(Backend& through, Backend& from, Backend& to, double* bytes_per_second) {
  auto source = from.allocate(link_bytes), target = to.allocate(link_bytes);
  if (!source.ok()) return source.status();
  if (!target.ok()) return target.status();
  double fastest = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    Stopwatch watch;
    STRIDE_TRY(through.copy((*target)->data(), (*source)->data(), link_bytes));
    fastest = std::max(fastest, static_cast<double>(link_bytes) / watch.seconds());
  }
  *bytes_per_second = fastest;
  return {};
}

}  // namespace

Result<std::unique_ptr<GpusMachine>> GpusMachine::make(const GpusOptions& options, uint64_t devices,
                                                       const std::shared_ptr<Backend>& host) {
  auto there = Backend::list_devices();
  if (!there.ok()) return there.status();
  if (!options.one_gpu && devices > there->size())
    return Status(StatusCode::unavailable, std::to_string(devices) + " devices, and there are " +
                                               std::to_string(there->size()))
        .with_remedy("lower --devices, or give --kind one-gpu");
  auto machine = std::make_unique<GpusMachine>();
  CudaOptions one{.host = host};
  for (uint64_t i = 0; i < devices && !options.one_gpu; ++i)
    one.peers.push_back(static_cast<int>(i));
  for (uint64_t i = 0; i < devices; ++i) {
    one.device = options.one_gpu ? 0 : static_cast<int>(i);
    auto made = Backend::cuda(one);
    if (!made.ok()) return made.status();
    machine->parts_.push_back(std::move(*made));
  }
  machine->backend_ = machine->parts_[0];
  if (devices > 1) {
    auto several = Backend::several(machine->parts_, options.cut);
    if (!several.ok()) return several.status();
    machine->backend_ = std::move(*several);
  }
  return machine;
}

Status GpusMachine::measure_limits(bool one_gpu) {
  const uint64_t gpus = one_gpu ? 1 : devices();
  std::vector<BackendLimits> limits(gpus);
  std::vector<Status> results(gpus);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < gpus; ++i)
    threads.emplace_back(
        [&, i] { results[i] = parts_[i]->measure_limits(limit_table_bytes, &limits[i]); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) STRIDE_TRY(result);
  for (const BackendLimits& of_device : limits) {
    limits_.bus_both_bytes_per_second += of_device.bus_both_bytes_per_second;
    limits_.bus_out_bytes_per_second += of_device.bus_out_bytes_per_second;
  }
  if (devices() == 1) return {};
  return measure_link(*backend_, *parts_[0], *parts_[1], &limits_.link_bytes_per_second);
}

}  // namespace stride::benchmark
