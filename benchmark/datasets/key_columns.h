// Key columns that own their memory, and how large ones are made and sorted on all cores.
//
//   OwnedColumn halves = make_column(4, keys.size, &parallel, [&](uint64_t i) {
//     return keys[i].first(4);
//   });
//   OwnedColumn sorted = sorted_copy(halves.view(), &parallel);
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "benchmark/harness/parallel.h"
#include "gpu/backend.h"
#include "storage/column.h"

namespace stride::benchmark {

struct OwnedColumn {
  BulkVector<std::byte> data;
  BulkVector<uint64_t> offsets;  // rows + 1; unused where all rows have one width
  uint64_t rows = 0;
  uint32_t width = 0;  // bytes a row; 0: variable

  KeyColumn view() const {
    return width ? KeyColumn::fixed(data.data(), width, rows)
                 : KeyColumn::variable(data.data(), offsets.data(), rows);
  }
};

inline constexpr uint64_t min_rows_per_part = 16384;

// Row i is a copy of key_of(i), which is asked for twice where the width is 0, and is `width` bytes
// otherwise.
template <class KeyOf>
OwnedColumn make_column(uint32_t width, uint64_t rows, Parallel* parallel, const KeyOf& key_of) {
  OwnedColumn column;
  column.rows = rows;
  column.width = width;
  if (width == 0) {
    column.offsets.resize(rows + 1);
    column.offsets[0] = 0;
    parallel->for_parts(rows, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) column.offsets[i + 1] = key_of(i).size();
    });
    for (uint64_t i = 0; i < rows; ++i) column.offsets[i + 1] += column.offsets[i];
  }
  column.data.resize(width ? rows * width : column.offsets[rows]);
  KeyColumn to = column.view();
  parallel->for_parts(rows, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      Bytes key = key_of(i);
      if (!key.empty()) std::memcpy(column.data.data() + to.begin(i), key.data(), key.size());
    }
  });
  return column;
}

// Big-endian bytes as a number and back. Unsigned numbers of 4 or 8 bytes.
template <class Number>
Number swap_on_little_endian(Number number) {
  static_assert(std::is_same_v<Number, uint32_t> || std::is_same_v<Number, uint64_t>);
  if (std::endian::native != std::endian::little) return number;
  if constexpr (sizeof(Number) == 8) return __builtin_bswap64(number);
  return static_cast<Number>(__builtin_bswap32(static_cast<uint32_t>(number)));
}
template <class Number>
Number load_big_endian(const std::byte* from) {
  Number stored;
  std::memcpy(&stored, from, sizeof(stored));
  return swap_on_little_endian(stored);
}
template <class Number>
void store_big_endian(Number number, std::byte* to) {
  number = swap_on_little_endian(number);
  std::memcpy(to, &number, sizeof(number));
}

// The keys of a column whose width is that of Number, as numbers in ascending order.
template <class Number>
BulkVector<Number> sorted_numbers(const KeyColumn& keys, Parallel* parallel);
template <class Number>
OwnedColumn column_of(const BulkVector<Number>& numbers, Parallel* parallel);

// The rows in ascending order.
OwnedColumn sorted_copy(const KeyColumn& keys, Parallel* parallel);

}  // namespace stride::benchmark
