// Sorting records or queries by key, on all cores: for the peers' configurations that load or look
// up in key order, and for what the harness expects.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "benchmark/harness/parallel.h"
#include "benchmark/harness/records.h"
#include "engine/result_buffer.h"
#include "storage/column.h"

namespace stride::benchmark {

struct SortedRow {
  uint64_t prefix;  // key_prefix() of its key
  uint32_t row;
};

// The first 8 bytes as a big-endian number, filled up with zeros: orders as the keys do, except
// that equal prefixes need a look at the keys where those are not 8 bytes long.
inline uint64_t key_prefix(Bytes key) {
  uint64_t prefix = 0;
  if (key.size() >= 8) {
    std::memcpy(&prefix, key.data(), 8);
    return std::endian::native == std::endian::little ? __builtin_bswap64(prefix) : prefix;
  }
  for (size_t i = 0; i < 8; ++i) {
    prefix = prefix << 8 | (i < key.size() ? static_cast<uint8_t>(key[i]) : 0);
  }
  return prefix;
}

// All records in the order of their keys; equal keys in the order of their numbers.
void sort_rows(const Records& records, Parallel* parallel, ResultBuffer<SortedRow>* rows);
// The same for the rows of one column.
void sort_rows(const KeyColumn& keys, Parallel* parallel, ResultBuffer<SortedRow>* rows);

// Keeps the last of each group of rows with equal keys, and returns how many there are.
uint64_t keep_last_of_equal(const Records& records, ResultBuffer<SortedRow>* rows);

}  // namespace stride::benchmark
