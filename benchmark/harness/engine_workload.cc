#include "benchmark/harness/engine_workload.h"

#include "benchmark/harness/machine.h"

namespace stride::benchmark {

EngineSettings settings_for(const EngineWorkloadOptions& options, const Records& records) {
  EngineSettings settings;
  settings.threads = options.threads;
  settings.durability = options.durability;
  settings.key_width = records.key_width();
  settings.records = records.size();
  settings.bytes = records.bytes();
  settings.longest_value = records.longest_value();
  settings.stride = options.stride;
  return settings;
}

ResultRow prototype_for(const std::string& workload, const EngineWorkloadOptions& options,
                        uint64_t raw_bytes) {
  static const char* const durabilities[] = {"sync", "flush", "none"};
  static const char* const placements[] = {"host", "device"};
  ResultRow row;
  row.workload = workload;
  row.machine = this_machine().to_string();
  row.raw_bytes = raw_bytes;
  row.numbers = {{"threads", options.threads}};
  row.texts = {{"durability", durabilities[static_cast<int>(options.durability)]},
               {"values", placements[static_cast<int>(options.stride.value_placement)]}};
  return row;
}

Status run_engine(const EngineConfiguration& engine, const EngineSettings& settings,
                  const std::string& parent, const ResultRow& prototype, const Progress& progress,
                  const EnginePhases& phases, std::vector<ResultRow>* rows) {
  Result<ScratchDirectory> directory = ScratchDirectory::create(parent, engine.name());
  if (!directory.ok()) return directory.status();
  EngineRun run(engine, settings, std::move(*directory), prototype, &progress);
  Status status = phases(&run);
  Status closed = run.finish(rows);
  return run.explain(status.ok() ? closed : status);
}

Status run_engines(const EngineWorkloadOptions& options, const EngineSettings& settings,
                   const ResultRow& prototype, const Progress& progress, const EnginePhases& phases,
                   std::vector<ResultRow>* rows) {
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat) {
    for (const EngineConfiguration& engine : options.engines) {
      STRIDE_TRY(
          run_engine(engine, settings, options.directory, prototype, progress, phases, rows));
    }
  }
  return {};
}

}  // namespace stride::benchmark
