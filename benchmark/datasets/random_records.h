// Records with random distinct 8-byte keys and random values of one length.
//
//   RandomRecords random({.records = 100'000'000, .value_bytes = 44, .seed = 1}, &parallel);
//   Records records = random.view();
#pragma once

#include <cstdint>

#include "benchmark/datasets/key_columns.h"
#include "benchmark/harness/records.h"

namespace stride::benchmark {

struct RandomRecordsOptions {
  uint64_t records = 1'000'000;
  uint32_t value_bytes = 44;
  uint64_t seed = 1;
};

// Owns the columns, which take nothing but the bytes of keys and values, on huge pages where the
// system has them. Every byte follows from its place and the seed, so that equal options give equal
// records with any number of threads.
class RandomRecords {
 public:
  RandomRecords(const RandomRecordsOptions& options, Parallel* parallel);

  KeyColumn keys() const { return KeyColumn::fixed(keys_.data(), 8, options_.records); }
  ValueColumn values() const {
    return ValueColumn::fixed(values_.data(), options_.value_bytes, options_.records);
  }
  // As one flow. Valid as long as this lives.
  Records view() const { return Records({{keys(), values()}}); }

 private:
  RandomRecordsOptions options_;
  BulkVector<std::byte> keys_;
  BulkVector<uint64_t> values_;  // with room for one word at least
};

}  // namespace stride::benchmark
