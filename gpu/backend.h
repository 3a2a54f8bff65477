// What executes batches: host threads, or a CUDA device with host threads beside it.
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

  virtual Sorter& sorter() = 0;
  virtual TreeIndex& tree_index() = 0;
  virtual LongestPrefix& longest_prefix() = 0;
  virtual Scatter& scatter() = 0;
  virtual Sets& sets() = 0;
};

}  // namespace stride
