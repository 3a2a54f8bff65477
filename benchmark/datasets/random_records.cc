#include "benchmark/datasets/random_records.h"

#include "benchmark/datasets/tree_keys.h"
#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
RandomRecords::RandomRecords(const RandomRecordsOptions& options, Parallel* parallel)
    : options_(options) {
  RandomKeys random_keys(8, options.seed);
  keys_.resize(options.records * 8);
  parallel->for_parts(options.records, min_rows_per_part,
                      [&](unsigned, uint64_t begin, uint64_t end) {
                        for (uint64_t i = begin; i < end; ++i) {
                          random_keys.write(i, keys_.data() + 8 * i);
                        }
                      });
  // Not the words that seeds nearby have, one place further.
  uint64_t seed = random_word(options.seed, 0);
  values_.resize(options.records * options.value_bytes / 8 + 1);
  parallel->for_parts(values_.size(), min_rows_per_part,
                      [&](unsigned, uint64_t begin, uint64_t end) {
                        for (uint64_t i = begin; i < end; ++i) values_[i] = random_word(seed, i);
                      });
}

}  // namespace stride::benchmark
