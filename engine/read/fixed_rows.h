// Results whose rows all have the width that the caller wants (GetResult::row_width), those that
// were not found too.
#pragma once

#include <cstdint>

#include "engine/lookup_result.h"
#include "engine/read/result_writer.h"

namespace stride {

// Makes room for them.
inline void reset_rows(uint64_t rows, GetResult* result) {
  result->data.reset(rows * result->row_width);
  result->values = Column::fixed(result->data.data(), result->row_width, rows);
}

// Copies the values of rows [begin, end) to where they belong; from(i): where row i is, or null.
template <class From>
void copy_rows(uint64_t begin, uint64_t end, GetResult* result, const From& from) {
  const uint64_t width = result->row_width;
  ResultWriter out(result->data.data() + begin * width, result->data.size() > cached_bytes);
  auto look_ahead = [&](uint64_t i) {
    if (const std::byte* row = i < end ? from(i) : nullptr) prefetch_row(row, width);
  };
  for (uint64_t i = begin; i < begin + copies_ahead; ++i) look_ahead(i);
  for (uint64_t i = begin; i < end; ++i) {
    look_ahead(i + copies_ahead);
    if (const std::byte* row = from(i))
      out.add(row, width);
    else
      out.add_zeros(width);
  }
}

}  // namespace stride
