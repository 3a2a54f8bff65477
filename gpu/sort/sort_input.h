// The rows of a staged batch, end to end, and what one pass over them tells about their order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/host/task_pool.h"
#include "gpu/sort/sort_ties.h"
#include "gpu/sorter.h"
#include "storage/column.h"

namespace stride {

class SortInput {
 public:
  explicit SortInput(std::span<const KeyColumn> chunks) : chunks_(chunks) {
    first_rows_.reserve(chunks.size() + 1);
    first_rows_.push_back(0);
    for (const KeyColumn& chunk : chunks) {
      first_rows_.push_back(first_rows_.back() + chunk.size);
      if (chunk.size > 0) all_numbers_ &= chunk.is_fixed() && chunk.width == 8;
    }
  }

  uint64_t rows() const { return first_rows_.back(); }
  bool all_numbers() const { return all_numbers_; }  // all keys are of 8 bytes, fixed
  ChunkKeys keys() const { return {chunks_}; }

  // Calls body(first position, column, first id) for each chunk's part of rows [begin, end).
  template <class Body>
  void for_parts(uint64_t begin, uint64_t end, const Body& body) const {
    auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), begin);
    auto chunk = static_cast<uint32_t>(after - first_rows_.begin() - 1);
    for (; begin < end; ++chunk) {
      uint64_t stop = std::min(first_rows_[chunk + 1], end);
      if (stop == begin) continue;
      uint64_t row = begin - first_rows_[chunk];
      body(begin, chunks_[chunk].slice(row, stop - begin),
           make_row_id(chunk, static_cast<uint32_t>(row)));
      begin = stop;
    }
  }

  uint32_t id_at(uint64_t position) const {
    uint32_t id = 0;
    for_parts(position, position + 1,
              [&](uint64_t, const KeyColumn&, uint32_t first) { id = first; });
    return id;
  }

 private:
  std::span<const KeyColumn> chunks_;
  std::vector<uint64_t> first_rows_;
  bool all_numbers_ = true;
};

// What is known of rows before they are sorted.
struct RowOrder {
  bool ascending = true;               // none is smaller than the one before
  bool strictly = true;                // and none is equal to it
  uint64_t differing = 0;              // bits of numbers
  uint64_t shared_bytes = UINT64_MAX;  // that all keys begin with

  void add(const RowOrder& other) {
    ascending &= other.ascending;
    strictly &= other.strictly;
    differing |= other.differing;
    shared_bytes = std::min(shared_bytes, other.shared_bytes);
  }
};

// Looks at rows [begin, end) and how they follow the row before; compares with the first row of
// all.
inline RowOrder order_of_numbers(const SortInput& input, uint64_t begin, uint64_t end) {
  ChunkKeys keys = input.keys();
  uint64_t first = keys.slice(input.id_at(0), 0);
  uint64_t before = begin > 0 ? keys.slice(input.id_at(begin - 1), 0) : 0;
  bool smaller = false, equal = false;
  RowOrder order;
  input.for_parts(begin, end, [&](uint64_t position, const KeyColumn& column, uint32_t) {
    for (uint64_t i = 0; i < column.size; ++i) {
      uint64_t number = load_big_endian(column.data + i * 8);
      order.differing |= number ^ first;
      smaller |= number < before;
      equal |= number == before && position + i > 0;
      before = number;
    }
  });
  order.ascending = !smaller;
  order.strictly = !smaller && !equal;
  return order;
}

inline RowOrder order_of_keys(const SortInput& input, uint64_t begin, uint64_t end) {
  ChunkKeys keys = input.keys();
  Bytes first = keys[input.id_at(0)];
  Bytes before = begin > 0 ? keys[input.id_at(begin - 1)] : Bytes{};
  RowOrder order;
  order.shared_bytes = first.size();
  input.for_parts(begin, end, [&](uint64_t position, const KeyColumn& column, uint32_t) {
    for (uint64_t i = 0; i < column.size; ++i) {
      Bytes key = column[i];
      if (order.shared_bytes > 0) {
        order.shared_bytes = shared_bytes(first, key, 0, order.shared_bytes);
      }
      if (order.ascending && position + i > 0) {
        int compared = compare_keys(before, key);
        order.ascending = compared <= 0;
        order.strictly &= compared < 0;
      }
      before = key;
    }
  });
  return order;
}

}  // namespace stride
