#include "benchmark/workloads/lookup/workload.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/lookup_plan.h"
#include "benchmark/harness/page_cache.h"
#include "benchmark/workloads/lookup/limits.h"
#include "storage/first_failure.h"

namespace stride::benchmark {
namespace {

// Each needs a database that is opened anew.
constexpr uint64_t min_cold_batches = 3, max_cold_batches = 32;
constexpr double max_cold_seconds = 5;  // with all the openings, of one size

class LookupWorkload {
 public:
  LookupWorkload(const LookupWorkloadOptions& options, const Progress& progress)
      : options_(options), progress_(progress), parallel_(options.threads), limits_(options) {}

  Status prepare();
  Status run(std::vector<ResultRow>* rows);

 private:
  Status run_phases(EngineRun* run);
  Status look_up(EngineRun* run, uint64_t batch, Answers answers);
  Status time_callers(EngineUnderTest* engine, uint64_t batch, Answers answers, uint64_t* queries,
                      double* seconds);
  Status look_up_cold(EngineRun* run, uint64_t batch);
  Status open_cold(EngineRun* run, uint64_t* cached);
  Status check_all(EngineUnderTest* engine);
  ResultRow prototype() const;

  const LookupWorkloadOptions& options_;
  const Progress& progress_;
  Parallel parallel_;
  std::optional<RandomRecords> random_;
  Records records_;
  std::optional<Expected> expected_;
  std::vector<LookupPlan> lookups_;  // of each caller
  LookupLimits limits_;
};

Status LookupWorkload::prepare() {
  progress_.show("making " + with_commas(options_.records.records) + " records");
  random_.emplace(options_.records, &parallel_);
  records_ = random_->view();
  STRIDE_TRY(limits_.measure(*random_, &parallel_, progress_));
  progress_.show("making queries");
  expected_.emplace(&records_, &parallel_);
  lookups_.reserve(options_.callers);
  for (unsigned caller = 0; caller < options_.callers; ++caller)
    lookups_.emplace_back(&*expected_,
                          LookupOptions{.seed = options_.records.seed + caller,
                                        .queries = LookupPlan::queries_for(options_.batches),
                                        .min_seconds = options_.lookup_seconds});
  return {};
}

ResultRow LookupWorkload::prototype() const {
  ResultRow row = prototype_for("lookup", options_, expected_->bytes());
  row.numbers["n"] = static_cast<double>(options_.records.records);
  row.numbers["value_bytes"] = options_.records.value_bytes;
  row.numbers["seed"] = static_cast<double>(options_.records.seed);
  row.numbers["callers"] = options_.callers;
  return row;
}

Status LookupWorkload::run(std::vector<ResultRow>* rows) {
  ResultRow row = prototype();
  STRIDE_TRY(run_engines(
      options_, settings_for(options_, records_), row, progress_,
      [this](EngineRun* run) { return run_phases(run); }, rows));
  limits_.apply(rows);
  std::ranges::move(limits_.rows(row), std::back_inserter(*rows));
  return {};
}

Status LookupWorkload::run_phases(EngineRun* run) {
  STRIDE_TRY(run->start());
  STRIDE_TRY(run->measure("load", records_.size(), [&] { return run->engine().write(records_); }));
  if (options_.cold) {
    STRIDE_TRY(run->close_and_limit_memory(options_.cold_memory_bytes));
    for (uint64_t batch : options_.batches) STRIDE_TRY(look_up_cold(run, batch));
    return check_all(&run->engine());
  }
  for (uint64_t batch : options_.batches) {
    STRIDE_TRY(look_up(run, batch, Answers::copies));
    if (run->engine().gives_references()) STRIDE_TRY(look_up(run, batch, Answers::references));
  }
  STRIDE_TRY(run->reopen(records_.size()));
  return check_all(&run->engine());
}

Status LookupWorkload::look_up(EngineRun* run, uint64_t batch, Answers answers) {
  EngineUnderTest& engine = run->engine();
  if (options_.callers > 1 && !engine.has_many_callers())
    return Status::invalid("--callers with an engine that takes calls from one thread")
        .with_remedy("add --engines stride");
  for (LookupPlan& lookups : lookups_) STRIDE_TRY(lookups.check(&engine, batch, answers));
  std::string phase = (answers == Answers::copies ? "lookup_" : "find_") + batch_name(batch);
  STRIDE_TRY(run->measure_parts(phase, [&](uint64_t* queries, double* seconds) {
    return time_callers(&engine, batch, answers, queries, seconds);
  }));
  run->last_row().numbers["batch"] = static_cast<double>(batch);
  return {};
}

// seconds: what the queries take at the sum of the callers' rates.
Status LookupWorkload::time_callers(EngineUnderTest* engine, uint64_t batch, Answers answers,
                                    uint64_t* queries, double* seconds) {
  if (lookups_.size() == 1) return lookups_[0].time(engine, batch, answers, queries, seconds);
  std::vector<uint64_t> counts(lookups_.size());
  std::vector<double> times(lookups_.size());
  FirstFailure failure;
  std::vector<std::thread> callers;
  for (size_t i = 0; i < lookups_.size(); ++i)
    callers.emplace_back([&, i] {
      failure.report(lookups_[i].time(engine, batch, answers, &counts[i], &times[i]));
    });
  for (std::thread& caller : callers) caller.join();
  STRIDE_TRY(failure.status());
  double rate = 0;
  *queries = 0;
  for (size_t i = 0; i < lookups_.size(); ++i) {
    *queries += counts[i];
    rate += static_cast<double>(counts[i]) / times[i];
  }
  *seconds = static_cast<double>(*queries) / rate;
  return {};
}

Status LookupWorkload::look_up_cold(EngineRun* run, uint64_t batch) {
  uint64_t batches = 0, cached = 0;
  double cold = 0, warm = 0;
  auto look_up = [&](uint64_t* queries, double* seconds) -> Status {
    Stopwatch watch;
    do {
      double first, again;
      STRIDE_TRY(open_cold(run, &cached));
      STRIDE_TRY(lookups_[0].time_twice(&run->engine(), batch, &first, &again));
      cold += first;
      warm += again;
      ++batches;
    } while (batches < min_cold_batches ||
             (batches < max_cold_batches && watch.seconds() < max_cold_seconds));
    *queries = batches * batch;
    *seconds = cold;
    return {};
  };
  STRIDE_TRY(run->measure_parts("cold_" + batch_name(batch), look_up));
  run->last_row().numbers["batch"] = static_cast<double>(batch);
  run->last_row().numbers["cached_bytes"] = static_cast<double>(cached);
  STRIDE_TRY(
      run->measure_parts("warm_" + batch_name(batch), [&](uint64_t* queries, double* seconds) {
        *queries = batches * batch;
        *seconds = warm;
        return Status();
      }));
  run->last_row().numbers["batch"] = static_cast<double>(batch);
  return {};
}

// cached: the most bytes of the files that the system would not forget.
Status LookupWorkload::open_cold(EngineRun* run, uint64_t* cached) {
  STRIDE_TRY(run->engine().close());
  STRIDE_TRY(evict_page_cache(run->directory()));
  *cached = std::max(*cached, cached_bytes(run->directory()));
  return run->engine().open();
}

Status LookupWorkload::check_all(EngineUnderTest* engine) {
  ReadCheck check(true);
  STRIDE_TRY(engine->read(check));
  return expected_->check(check);
}

}  // namespace

Status run_lookup(const LookupWorkloadOptions& options, const Progress& progress,
                  std::vector<ResultRow>* rows) {
  LookupWorkload workload(options, progress);
  STRIDE_TRY(workload.prepare());
  return workload.run(rows);
}

}  // namespace stride::benchmark
