// Measures one set after the other, and collects the rows.
//
//   DedupRun run(options, progress, &rows);
//   STRIDE_TRY(run.make(data_options, &checked));
//   STRIDE_TRY(run.measure_set(checked, {.form = VectorForm::dense}, run.host_place(threads)));
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/harness/parallel.h"
#include "benchmark/harness/placed_memory.h"
#include "benchmark/workloads/dedup/checks.h"
#include "benchmark/workloads/dedup/workload.h"
#include "gpu/backend.h"

namespace stride::benchmark {

// A backend that sets are made by, and where what they are asked lies.
struct SetPlace {
  Backend* backend = nullptr;
  Backend* host = nullptr;
  const Side* side = nullptr;
  std::string name;  // "device memory", "2 threads"
  unsigned threads = 1;
};

// How a set is made.
struct SetChoice {
  VectorForm form = VectorForm::dense;
  double load = 0.8;
  uint64_t bucket = 0;
  uint32_t neighbours = 0;
  bool wide_nodes = false;
};

class DedupRun {
 public:
  DedupRun(const DedupOptions& options, const Progress& progress, std::vector<ResultRow>* rows)
      : options_(options), progress_(progress), rows_(rows), parallel_(options.threads) {}

  // All further rows have these.
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;

  Status make(const DedupDataOptions& options, Checked* checked);
  // The set in one place.
  Status measure_set(const Checked& checked, const SetChoice& choice, const SetPlace& place);
  Status measure_bytes(const Checked& checked, unsigned threads);
  Status measure_unordered(const Checked& checked);
  // The device's, if one is there and wanted.
  Status open_device();
  Backend* device() const { return device_.get(); }
  std::vector<unsigned> thread_counts() const {
    if (options_.threads == 1) return {1};
    return {1, options_.threads};
  }
  SetPlace host_place(unsigned threads);
  SetPlace device_place(const Side& side) {
    return {device_.get(), host_place(options_.threads).backend, &side, side.name,
            options_.threads};
  }

 private:
  ResultRow prototype(const Checked& checked, const std::string& engine,
                      const std::string& configuration) const;
  Result<uint64_t> count_nodes(const Checked& checked, const SetChoice& choice,
                               const SetPlace& place);
  Status measure_get(const Checked& checked, VectorSet* set, const SetPlace& place,
                     const Batches& batches, std::span<const uint64_t> ids,
                     std::span<const uint64_t> was_new, TimedPhases* phases);
  // Adds the rows, with what all of them have.
  Status finish(TimedPhases* phases, Backend* backend, uint64_t bytes, uint64_t distinct,
                const std::map<std::string, double>& numbers);

  const DedupOptions& options_;
  const Progress& progress_;
  std::vector<ResultRow>* rows_;
  Parallel parallel_;
  std::map<unsigned, std::unique_ptr<Backend>> hosts_;
  std::unique_ptr<Backend> device_;
  std::map<std::pair<Backend*, uint64_t>, double> gathers_;  // a second, of a table's bytes
};

}  // namespace stride::benchmark
