// Checks stored bytes before they are read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/status.h"

namespace stride {

// Makes sure that the blocks which hold [p, p + bytes) match their checksums. A reader that is
// given a guard calls ensure() before it reads bytes of the key column; where it returns false it
// stops and the call as a whole returns failure(). Thread-safe. A segment that is known to be
// intact (just written, or wholly checked) hands out no guard at all.
class BlockGuard {
 public:
  virtual ~BlockGuard() = default;
  virtual bool ensure(const void* p, uint64_t bytes) = 0;
  // The first damage that ensure() found (Corruption: file, section, offset).
  virtual Status failure() const = 0;
};

}  // namespace stride
