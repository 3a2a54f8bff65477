// What all workloads that compare engines share: their options, and a fresh database for every
// engine in every repeat.
//
//   s = run_engines(options, settings_for(options, records), prototype, progress,
//                   [&](EngineRun* run) { return run_phases(run); }, &rows);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/engine_under_test.h"
#include "benchmark/harness/report.h"

namespace stride::benchmark {

struct EngineWorkloadOptions {
  std::vector<EngineConfiguration> engines;
  Durability durability = Durability::sync;
  Options stride;  // what StrideDB alone takes, as in EngineSettings
  unsigned repeats = 3;
  unsigned threads = 1;
  std::string directory = ".";  // where the databases' directories are made
};

using EnginePhases = std::function<Status(EngineRun*)>;

// The directory is left to EngineRun.
EngineSettings settings_for(const EngineWorkloadOptions& options, const Records& records);

// What all rows share. raw_bytes: of the distinct keys and their values.
ResultRow prototype_for(const std::string& workload, const EngineWorkloadOptions& options,
                        uint64_t raw_bytes);

// Calls phases(run) for one engine with a directory of its own in `parent`, and appends the rows.
Status run_engine(const EngineConfiguration& engine, const EngineSettings& settings,
                  const std::string& parent, const ResultRow& prototype, const Progress& progress,
                  const EnginePhases& phases, std::vector<ResultRow>* rows);

// The same for every engine, as often as the options say. The first failure ends it.
Status run_engines(const EngineWorkloadOptions& options, const EngineSettings& settings,
                   const ResultRow& prototype, const Progress& progress, const EnginePhases& phases,
                   std::vector<ResultRow>* rows);

}  // namespace stride::benchmark
