// Blocks parsed side by side and handed on in order.
#pragma once

#include <memory>
#include <vector>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/input/block_reader.h"

namespace stride::cli {

// What one thread does with its blocks.
class BlockWorker {
 public:
  virtual ~BlockWorker() = default;
  // While other workers do the same.
  virtual ExitStatus process(const Block& block) = 0;
  // After process(), by one worker at a time, in the order of the blocks.
  virtual ExitStatus emit(const Block& block) = 0;
};

// A thread for each worker; the calling thread is one of them. Ends at the first failure in the
// order of the blocks, or `interrupted`.
ExitStatus run_pipeline(BlockReader* reader,
                        const std::vector<std::unique_ptr<BlockWorker>>& workers);

// As many as there are processors that this process may use.
unsigned available_threads();

}  // namespace stride::cli
