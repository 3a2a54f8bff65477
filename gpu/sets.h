// Makes the sets of gpu/vector_set.h, and sets of byte strings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "gpu/vector_set.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// An exact set of byte strings of any length, in host memory.
class ByteSet {
 public:
  virtual ~ByteSet() = default;
  // ids: one for each row, or none: its place in the order of first occurrence over all calls (0,
  // 1, 2, ...). was_new: (rows.size + 63) / 64 words, or none. invalid_argument: room of another
  // size. resource_exhausted: nothing is put, but what earlier calls put stays.
  virtual Status find_or_put(const KeyColumn& rows, std::span<uint64_t> ids,
                             std::span<uint64_t> was_new) = 0;
  virtual uint64_t size() const = 0;
  virtual uint64_t memory_bytes() const = 0;
};

class Sets {
 public:
  virtual ~Sets() = default;

  // invalid_argument: options that do not hold. unavailable: slots or nodes of 128 bits, on a
  // device whose atomic operations are narrower. resource_exhausted: no room for so large a table.
  virtual Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) = 0;
  virtual Result<std::unique_ptr<ByteSet>> make_byte_set() = 0;
};

}  // namespace stride
