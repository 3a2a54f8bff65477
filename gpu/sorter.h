// Sorts the rows of a staged batch by key.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/bulk_vector.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Row `row` of chunk `chunk` of a staged batch. A chunk has at most 65,536 rows.
inline constexpr uint32_t row_bits = 16;
inline uint32_t make_row_id(uint32_t chunk, uint32_t row) { return chunk << row_bits | row; }

struct Sorted {
  // Row ids in ascending key order; of equal keys only the one with the largest id (the newest).
  BulkVector<uint32_t> order;
  // Where all keys are 8 bytes: the keys in that order, as stored (big-endian bytes). Else empty.
  BulkVector<uint64_t> keys8;
};

class Sorter {
 public:
  virtual ~Sorter() = default;

  // Sorts the rows of `chunks` by key (unsigned bytes, a prefix first). Chunks may mix fixed and
  // variable layouts. At most 65,536 chunks of at most 65,536 rows. Stable: of equal keys only the
  // row with the largest id is kept.
  virtual Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) = 0;
};

}  // namespace stride
