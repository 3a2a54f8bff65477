// What executes batches: host threads, a CUDA device with host threads beside it, or several
// devices.
//
//   std::unique_ptr<Backend> backend = Backend::automatic();     // a device where there is one
//   Sorted s;
//   backend->sorter().sort(chunks, &s);                          // newest of equal keys stays
//   std::vector<std::byte> image;
//   backend->tree_index().build_tree(column, TreeOptions{}, &image);
//
// A backend is the place where work runs (gpu/execution_context.h) and one object for each thing
// that it can do. Those live as long as the backend does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/execution_context.h"
#include "gpu/longest_prefix.h"
#include "gpu/scatter.h"
#include "gpu/sets.h"
#include "gpu/sorter.h"
#include "gpu/tree_index.h"
#include "storage/status.h"

namespace stride {

class Backend;

struct CudaOptions {
  int device = 0;
  uint64_t memory_limit = 0;  // bytes of the device's memory; 0: nine tenths of what is free
  // For what stays on the host. Null: one of its own, with host_threads as in Backend::host().
  std::shared_ptr<Backend> host = nullptr;
  unsigned host_threads = 0;
  // Other devices that read and write this one's memory, and it theirs, where the machine has a way
  // between them.
  std::vector<int> peers = {};
  uint32_t fault_group = 0;  // whose calls DeviceFaults (gpu/device/device_faults.h) lets fail
};

// How batches are cut. The defaults need no tuning.
struct SeveralOptions {
  // A device gets at least so many queries of a batch. One of less than twice as many goes to a
  // single device, each batch to another one in turn.
  uint64_t min_share = uint64_t{1} << 18;
  // The same for batches whose queries or results lie in the memory of a device: on their way to
  // another device they cross the link between the two.
  uint64_t min_device_share = uint64_t{1} << 22;
  // Indexes are laid over the devices in parts even where each of them has room for a copy.
  bool in_parts = false;
  // Memory of each device that is kept for later batches, until something else needs it.
  uint64_t kept_bytes = uint64_t{4} << 30;
};

// A device of this machine.
struct DeviceInfo {
  int number = 0;
  std::string model;
  uint64_t memory_bytes = 0;
};

struct DevicesOptions {
  // Their numbers. Empty: the first device and all others of its model.
  std::vector<int> devices = {};
  uint64_t memory_limit = 0;  // of each, as CudaOptions says
  std::shared_ptr<Backend> host = nullptr;
  unsigned host_threads = 0;
  SeveralOptions cut{};
};

class Backend : public ExecutionContext {
 public:
  // A pool of `threads` workers (the calling thread is one of them), at most one a core; 0: one for
  // each core.
  static std::unique_ptr<Backend> host(unsigned threads);
  // unavailable: built without CUDA, no driver, no such device, or one too old. The message says
  // which.
  static Result<std::unique_ptr<Backend>> cuda(const CudaOptions& options = {});
  // The first CUDA device where there is one, else the host.
  static std::unique_ptr<Backend> automatic(unsigned threads = 0);

  // One backend over several devices, behind the same calls (docs/gpus.md). What is resident lies
  // on each of them, or in parts, and a batch is cut in shares. Large sets whose ids have no order
  // are spread by hash. Sorting, builds, other sets and prepared scatters are the first device's
  // work. A device that fails is left out from then on, and others do its
  // share. The same device may be given several times, as backends of their own. invalid_argument:
  // none, or one that has no device.
  static Result<std::unique_ptr<Backend>> several(std::vector<std::shared_ptr<Backend>> devices,
                                                  const SeveralOptions& options = {});
  // The devices of these numbers: several(), or, where it is a single one, cuda().
  // invalid_argument: a number that comes twice, or that no device has. unavailable: as cuda().
  static Result<std::unique_ptr<Backend>> devices(const DevicesOptions& options = {});
  // Whether all of these devices are there, and none is named twice. invalid_argument says which is
  // not. No numbers: ok, whatever there is.
  static Status check_devices(const std::vector<int>& numbers);
  // The devices that this machine has. unavailable: as cuda().
  static Result<std::vector<DeviceInfo>> list_devices();

  virtual Sorter& sorter() = 0;
  virtual TreeIndex& tree_index() = 0;
  virtual LongestPrefix& longest_prefix() = 0;
  virtual Scatter& scatter() = 0;
  virtual Sets& sets() = 0;
};

}  // namespace stride
