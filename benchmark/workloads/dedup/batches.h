// Rows that are put and found in calls of one size.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

inline uint64_t bitmap_words(uint64_t bits) { return (bits + 63) / 64; }

// Rows that are handed over in calls of `batch`, each with its own words of bits.
class Batches {
 public:
  Batches(uint64_t rows, uint64_t batch)
      : rows_(rows), batch_(batch == 0 || batch > rows ? std::max<uint64_t>(rows, 1) : batch) {}

  uint64_t bit_words() const { return (rows_ + batch_ - 1) / batch_ * bitmap_words(batch_); }
  bool bit(std::span<const uint64_t> words, uint64_t row) const {
    uint64_t at = row % batch_;
    return words[row / batch_ * bitmap_words(batch_) + at / 64] >> (at % 64) & 1;
  }
  // call(rows, ids, bits) for one batch after the other.
  template <class Call>
  Status put(const KeyColumn& rows, std::span<uint64_t> ids, std::span<uint64_t> bits,
             const Call& call) const {
    for (uint64_t first = 0; first < rows.size; first += batch_) {
      uint64_t n = std::min(batch_, rows.size - first);
      STRIDE_TRY(call(rows.slice(first, n), ids.empty() ? ids : ids.subspan(first, n),
                      bits.subspan(first / batch_ * bitmap_words(batch_), bitmap_words(n))));
    }
    return {};
  }
  template <class Call>
  Status find(const KeyColumn& rows, std::span<uint64_t> ids, const Call& call) const {
    for (uint64_t first = 0; first < rows.size; first += batch_) {
      uint64_t n = std::min(batch_, rows.size - first);
      STRIDE_TRY(call(rows.slice(first, n), ids.subspan(first, n)));
    }
    return {};
  }

 private:
  uint64_t rows_, batch_;
};

}  // namespace stride::benchmark
