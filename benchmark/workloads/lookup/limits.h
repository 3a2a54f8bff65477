// What the machine allows the lookup workload, measured in the same run.
//
//   LookupLimits limits(options);
//   s = limits.measure(random_records, &parallel, progress);
//   limits.apply(&rows);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "benchmark/workloads/lookup/workload.h"
#include "gpu/backend.h"

namespace stride::benchmark {

class LookupLimits {
 public:
  explicit LookupLimits(const LookupWorkloadOptions& options) : options_(options) {}

  // unavailable: the options insist on a device, and there is none.
  Status measure(const RandomRecords& records, Parallel* parallel, const Progress& progress);

  // A row for each limit and phase, of an engine named `limit` that is no database.
  std::vector<ResultRow> rows(const ResultRow& prototype) const;
  // Adds limit, limit_per_second and limit_percent to every row that has a bound.
  void apply(std::vector<ResultRow>* rows) const;

 private:
  struct Limit {
    std::string name;
    double per_second = 0;  // records or queries; 0: there is none
  };

  Status measure_device();
  Status measure_load(const RandomRecords& records, Parallel* parallel);
  void measure_memory(const RandomRecords& records, Parallel* parallel);
  // On the way through the host alone, and through a device.
  Limit host_limit(bool copies, uint64_t batch) const;
  Limit bus_limit(bool copies) const;
  Limit bound(const ResultRow& row) const;

  LookupWorkloadOptions options_;
  std::string device_name_;  // empty: there is none
  BackendLimits device_;
  Limit load_;
  std::map<uint64_t, double> gathers_, reads_;  // queries a second, by the size of the batch
};

}  // namespace stride::benchmark
