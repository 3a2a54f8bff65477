// Makes the sets of gpu/vector_set.h.
#pragma once

#include <memory>

#include "gpu/vector_set.h"
#include "storage/status.h"

namespace stride {

class Sets {
 public:
  virtual ~Sets() = default;

  // invalid_argument: options that do not hold. unavailable: slots or nodes of 128 bits, on a
  // device whose atomic operations are narrower. resource_exhausted: no room for so large a table.
  virtual Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) = 0;
  virtual Result<std::unique_ptr<ByteSet>> make_byte_set() = 0;
};

}  // namespace stride
