// From which number of queries on a device is faster than the host, by measurement.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "engine/catalog/indexed_segment.h"
#include "gpu/backend.h"

namespace stride {

// Thread-safe.
class Crossover {
 public:
  // Fewer queries than this are never worth a call to a device.
  static constexpr uint64_t min_queries = 512;

  // 0: it is not known yet.
  uint64_t queries() const { return queries_.load(std::memory_order_relaxed); }
  // Measures it with the keys of a segment that lies on the device, unless it was measured with one
  // that was more than a quarter as large.
  void measure(Backend& host, Backend& device, const IndexedSegment& segment,
               const ResidentIndex& resident);

 private:
  std::mutex mutex_;  // held while it is measured; guards measured_rows_
  uint64_t measured_rows_ = 0;
  std::atomic<uint64_t> queries_{0};
};

}  // namespace stride
