// Sorts rows of a number and an id in cache, on one thread. Stable.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "gpu/keys/key_bits.h"

namespace stride {

// Parts of two parallel arrays.
struct Rows {
  uint64_t* numbers;
  uint32_t* ids;

  Rows at(uint64_t i) const { return {numbers + i, ids + i}; }
};

// Which bits of the numbers differ: 0 where all are equal.
inline uint64_t differing_bits(const uint64_t* numbers, uint64_t n) {
  uint64_t bits = 0;
  for (uint64_t i = 1; i < n; ++i) bits |= numbers[i] ^ numbers[0];
  return bits;
}

// A few bits of a number below those that all numbers share, as a bucket.
struct BucketBits {
  uint32_t shift;
  uint32_t count;
  static BucketBits after_shared(uint64_t differing, uint32_t wanted) {  // differing != 0
    uint32_t top = 64 - leading_zeros(differing);
    uint32_t count = wanted < top ? wanted : top;
    return {top - count, count};
  }
  uint64_t buckets() const { return uint64_t{1} << count; }
  uint64_t of(uint64_t number) const { return number >> shift & (buckets() - 1); }
};

class RowSorter {
 public:
  // Sorts n rows from `rows`, with `other` (as many rows) as a second place for them, into `rows`
  // or `other`. n < 2^32.
  void sort(Rows rows, Rows other, uint64_t n, bool into_other) {
    if (n <= insertion_rows) return insert(rows, into_other ? other : rows, n);
    uint64_t differing = differing_bits(rows.numbers, n);
    if (differing == 0) {
      if (into_other) copy(rows, other, n);
      return;
    }
    auto bits = BucketBits::after_shared(differing, bucket_bits(n));
    // This call alone has these ends: deeper calls, of which only few are needed, have theirs.
    Ends ends(bits.buckets());
    scatter(rows, other, n, bits, ends.data());
    uint64_t begin = 0;
    for (uint64_t bucket = 0; bucket < bits.buckets(); ++bucket) {
      uint64_t end = ends.data()[bucket];
      uint64_t size = end - begin;
      if (size <= insertion_rows) {
        insert(other.at(begin), into_other ? other.at(begin) : rows.at(begin), size);
      } else {
        sort(other.at(begin), rows.at(begin), size, !into_other);
      }
      begin = end;
    }
  }

 private:
  static constexpr uint64_t insertion_rows = 24;
  // Buckets of about four rows, by counters that stay in the first cache.
  static uint32_t bucket_bits(uint64_t n) {
    return std::clamp(static_cast<uint32_t>(std::bit_width(n)) - 3, 1u, 13u);
  }

  class Ends {
   public:
    explicit Ends(uint64_t buckets) : data_(new uint32_t[buckets]()) {}
    uint32_t* data() { return data_.get(); }

   private:
    std::unique_ptr<uint32_t[]> data_;
  };

  // Leaves in `ends` where each bucket ends.
  static void scatter(Rows rows, Rows other, uint64_t n, BucketBits bits, uint32_t* ends) {
    for (uint64_t i = 0; i < n; ++i) ++ends[bits.of(rows.numbers[i])];
    uint32_t sum = 0;
    for (uint64_t bucket = 0; bucket < bits.buckets(); ++bucket) {
      uint32_t size = ends[bucket];
      ends[bucket] = sum;
      sum += size;
    }
    for (uint64_t i = 0; i < n; ++i) {
      uint32_t to = ends[bits.of(rows.numbers[i])]++;
      other.numbers[to] = rows.numbers[i];
      other.ids[to] = rows.ids[i];
    }
  }

  static void insert(Rows from, Rows to, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t number = from.numbers[i];
      uint32_t id = from.ids[i];
      uint64_t hole = i;
      for (; hole > 0 && to.numbers[hole - 1] > number; --hole) {
        to.numbers[hole] = to.numbers[hole - 1];
        to.ids[hole] = to.ids[hole - 1];
      }
      to.numbers[hole] = number;
      to.ids[hole] = id;
    }
  }

  static void copy(Rows from, Rows to, uint64_t n) {
    std::memcpy(to.numbers, from.numbers, n * sizeof(uint64_t));
    std::memcpy(to.ids, from.ids, n * sizeof(uint32_t));
  }
};

}  // namespace stride
