#include "benchmark/workloads/sts/workload.h"

#include <optional>

#include "adapters/sts/workload.h"
#include "benchmark/harness/arguments.h"
#include "benchmark/harness/lookup_plan.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t records_at_a_time = 65536;

// What a flow is going to write.
struct FlowColumns {
  std::vector<std::byte> keys, values;
  std::vector<uint64_t> value_offsets;

  Flow view() const {
    uint64_t n = value_offsets.size() - 1;
    return {KeyColumn::fixed(keys.data(), kKeyBytes, n),
            ValueColumn::variable(values.data(), value_offsets.data(), n)};
  }
};

FlowColumns make_flow(const StsOptions& options, uint32_t flow) {
  StsFlow source(options, flow);
  FlowColumns all;
  all.keys.reserve(source.remaining() * kKeyBytes);
  all.values.reserve(source.remaining() * 46);
  all.value_offsets.reserve(source.remaining() + 1);
  all.value_offsets.push_back(0);
  FlowColumns next;
  while (source.next_batch(records_at_a_time, next.keys, next.values, next.value_offsets) != 0) {
    uint64_t start = all.values.size();
    all.keys.insert(all.keys.end(), next.keys.begin(), next.keys.end());
    all.values.insert(all.values.end(), next.values.begin(), next.values.end());
    for (size_t i = 1; i < next.value_offsets.size(); ++i) {
      all.value_offsets.push_back(start + next.value_offsets[i]);
    }
  }
  return all;
}

class StsWorkload {
 public:
  StsWorkload(const StsWorkloadOptions& options, const Progress& progress)
      : options_(options), progress_(progress), parallel_(options.threads) {}

  void prepare();
  Status run(std::vector<ResultRow>* rows);

 private:
  ResultRow prototype() const;
  Status run_phases(EngineRun* run);
  Status ordered_read(EngineRun* run, const char* phase);

  const StsWorkloadOptions& options_;
  const Progress& progress_;
  Parallel parallel_;
  std::vector<FlowColumns> flows_;
  Records records_;
  std::optional<Expected> expected_;
  std::optional<LookupPlan> lookups_;
};

void StsWorkload::prepare() {
  progress_.show("making " + std::to_string(options_.records) + " records");
  StsOptions sts{.records = options_.records,
                 .flows = options_.flows,
                 .randomness = options_.randomness,
                 .seed = options_.seed};
  flows_.resize(options_.flows);
  std::vector<Flow> views;
  for (uint32_t f = 0; f < options_.flows; ++f) {
    flows_[f] = make_flow(sts, f);
    views.push_back(flows_[f].view());
  }
  records_ = Records(std::move(views));
  expected_.emplace(&records_, &parallel_);
  if (options_.batches.empty()) return;
  lookups_.emplace(&*expected_, LookupOptions{.seed = options_.seed,
                                              .queries = LookupPlan::queries_for(options_.batches),
                                              .min_seconds = options_.lookup_seconds});
}

ResultRow StsWorkload::prototype() const {
  ResultRow row = prototype_for("sts", options_, expected_->bytes());
  row.numbers["flows"] = options_.flows;
  row.numbers["randomness"] = options_.randomness;
  row.numbers["seed"] = static_cast<double>(options_.seed);
  row.numbers["workload_records"] = static_cast<double>(options_.records);
  return row;
}

Status StsWorkload::run(std::vector<ResultRow>* rows) {
  return run_engines(
      options_, settings_for(options_, records_), prototype(), progress_,
      [this](EngineRun* run) { return run_phases(run); }, rows);
}

Status StsWorkload::run_phases(EngineRun* run) {
  EngineUnderTest& engine = run->engine();
  STRIDE_TRY(run->start());
  STRIDE_TRY(run->measure("write", records_.size(), [&] { return engine.write(records_); }));
  STRIDE_TRY(ordered_read(run, "read"));
  STRIDE_TRY(ordered_read(run, "secondary_read"));
  for (uint64_t batch : options_.batches) {
    STRIDE_TRY(lookups_->check(&engine, batch));
    STRIDE_TRY(run->measure_parts("lookup_" + batch_name(batch), [&](uint64_t* n, double* seconds) {
      return lookups_->time(&engine, batch, Answers::copies, n, seconds);
    }));
  }
  STRIDE_TRY(run->reopen(records_.size()));
  FullCheck check(&*expected_);
  STRIDE_TRY(engine.read(check));
  return check.finish();
}

Status StsWorkload::ordered_read(EngineRun* run, const char* phase) {
  ReadCheck check(expected_->keys_are_numbers());
  STRIDE_TRY(run->measure(phase, expected_->size(), [&] { return run->engine().read(check); }));
  return expected_->check(check);
}

}  // namespace

Status run_sts(const StsWorkloadOptions& options, const Progress& progress,
               std::vector<ResultRow>* rows) {
  StsWorkload workload(options, progress);
  workload.prepare();
  return workload.run(rows);
}

}  // namespace stride::benchmark
