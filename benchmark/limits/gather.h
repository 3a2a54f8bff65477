// How fast this machine's cores copy values from random places into one column: the memory traffic
// of a lookup without the search for them.
//
//   GatherLimit gather(values, places, 0.2, &parallel);
//   double per_second = gather.values_per_second(100'000);
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "benchmark/datasets/key_columns.h"

namespace stride::benchmark {

class GatherLimit {
 public:
  // values: of fixed width, 1 byte at least. places: rows in the order in which they are copied,
  // made before the clock starts. Both must outlive it. seconds: that the best loop is measured;
  // the others are tried for an eighth of it.
  GatherLimit(const ValueColumn& values, std::span<const uint32_t> places, double seconds,
              Parallel* parallel)
      : values_(values), places_(places), seconds_(seconds), parallel_(parallel) {}

  // The best of several loops, in calls of `batch` values: on one core or all, with prefetches from
  // near or far ahead, with plain stores or some that pass by the caches.
  // Precondition: batch is 1 to places.size().
  double values_per_second(uint64_t batch);

 private:
  struct Loop {
    bool all_threads;
    bool past_caches;
    uint64_t ahead;  // values between a prefetch and its use
  };
  double measure(const Loop& loop, uint64_t batch, double min_seconds);
  void copy(const Loop& loop, std::span<const uint32_t> places);

  ValueColumn values_;
  std::span<const uint32_t> places_;
  double seconds_;
  Parallel* parallel_;
  BulkVector<std::byte> out_;
  uint64_t at_ = 0;
  std::atomic<uint64_t> seen_{0};  // batches
};

// Copies the values in the order of the places. past_caches: with stores that pass by the caches,
// where the machine has them; `out` is aligned to 64 bytes then.
void gather_rows(const ValueColumn& values, std::span<const uint32_t> places, uint64_t ahead,
                 bool past_caches, std::byte* out);

}  // namespace stride::benchmark
