// One engine under the clock: its phases become rows.
//
//   EngineRun run(context, engine, settings);
//   s = run.measure("write", n, [&] { return run.engine().write(records); });
//   s = run.reopen();
//   run.finish(&rows);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmark/harness/engine_under_test.h"
#include "benchmark/harness/progress.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/harness/stopwatch.h"

namespace stride::benchmark {

// Puts a name before a failure's message.
Status explain(const std::string& name, const Status& status);

class EngineRun {
 public:
  // `prototype` has what all rows of the workload share. Takes over the directory, and makes
  // `settings` point to it.
  EngineRun(const EngineConfiguration& configuration, EngineSettings settings,
            ScratchDirectory directory, const ResultRow& prototype, const Progress* progress);

  EngineUnderTest& engine() { return *engine_; }
  const std::string& directory() const { return directory_.path(); }
  // Precondition: a phase was measured.
  ResultRow& last_row() { return rows_.back(); }
  // Opens the new database, and remembers how much memory the process has by then.
  Status start();
  // Times work(), which handles that many records.
  Status measure(const std::string& phase, uint64_t records, const std::function<Status()>& work);
  // work(&records, &seconds) keeps its own time.
  Status measure_parts(const std::string& phase,
                       const std::function<Status(uint64_t*, double*)>& work);
  // Closes the database, takes its size, and opens it again: the phase `open`. The files are still
  // in the page cache.
  Status reopen(uint64_t records);
  // Closes the database and takes its size. Whoever opens it next has a budget for memory, where
  // the engine knows one (Options::memory_limit_bytes).
  Status close_and_limit_memory(uint64_t bytes);
  // Closes, and hands over the rows. Call it also after a failure.
  Status finish(std::vector<ResultRow>* rows);
  // Puts the engine's name before a failure's message.
  Status explain(const Status& status) const {
    return benchmark::explain(configuration_.name(), status);
  }

 private:
  void show(const std::string& phase) const;

  EngineConfiguration configuration_;
  EngineSettings settings_;
  ScratchDirectory directory_;
  ResultRow prototype_;
  const Progress* progress_;
  std::unique_ptr<EngineUnderTest> engine_;
  std::vector<ResultRow> rows_;
  uint64_t resident_before_ = 0, bytes_on_disk_ = 0;
};

}  // namespace stride::benchmark
