// What a snapshot's batched reads return (engine/snapshot.h). Reused, results keep their memory.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/result_buffer.h"
#include "gpu/location.h"
#include "storage/column.h"

namespace stride {

// References to stored values: entry i belongs to query i and is valid while the snapshot lives.
struct FindResult {
  Bitmap found;
  ResultBuffer<Location> locations;  // segment of the table, newest first, and rank there
  std::vector<ValueRows> columns;    // the values of each segment

  // Empty where not found.
  Bytes value(uint64_t i) const {
    Location at = locations[i];
    return at.found() ? columns[at.index][at.rank] : Bytes();
  }
};

// The longest prefix of each address: references to stored entries, as in FindResult.
struct MatchResult {
  Bitmap found;  // 0: no prefix of the table covers the address
  ResultBuffer<Location> locations;
  ResultBuffer<uint32_t> lengths;  // of the prefix, in bits; 0 where not found
  std::vector<ValueRows> columns;  // the values of each segment
  std::vector<PackedColumn> keys;  // the prefixes of each segment

  // Empty where not found.
  Bytes value(uint64_t i) const { return row(columns, i); }
  Bytes prefix(uint64_t i) const { return row(keys, i); }

 private:
  template <class Rows>
  Bytes row(const std::vector<Rows>& of, uint64_t i) const {
    Location at = locations[i];
    return at.found() ? of[at.index][at.rank] : Bytes();
  }
};

// An entry of a prefix table. Valid while the snapshot lives.
struct PrefixEntry {
  Bytes key;
  uint32_t length = 0;  // in bits
  Bytes value;
};

// Copied values: row i belongs to query i and is empty where not found.
struct GetResult {
  // Set by the caller: where all values that are found have so many bytes, those that are not have
  // them too, of 0, and `values` is a column of one width, which takes less time. 0: never.
  uint32_t row_width = 0;
  Bitmap found;
  ValueColumn values;  // points into data and offsets
  ResultBuffer<std::byte> data;
  ResultBuffer<uint64_t> offsets;
  ResultBuffer<uint64_t> scratch;
};

// For each query, the first entry whose key is not smaller. Valid while the snapshot lives.
struct LowerBoundResult {
  Bitmap found;  // 0: no such entry
  ResultBuffer<Bytes> keys;
  ResultBuffer<Bytes> values;
};

}  // namespace stride
