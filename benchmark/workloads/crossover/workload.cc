#include "benchmark/workloads/crossover/workload.h"

#include <algorithm>
#include <optional>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/lookup_plan.h"
#include "benchmark/peers/stride_peer.h"

namespace stride::benchmark {
namespace {

// Queries after which the automatic choice has brought up a device and the data there, with a wide
// margin: about 4m, or as many as an eighth of the rows.
constexpr uint64_t min_warming_queries = 8'000'000;
constexpr uint64_t warming_batch = 1'000'000;

// One way to look up a batch.
struct Way {
  std::string name;
  EngineUnderTest* engine;
  bool one_by_one = false;
};

class Crossover {
 public:
  Crossover(const CrossoverOptions& options, const Progress& progress)
      : options_(options), progress_(progress), parallel_(options.threads) {}

  Status prepare();
  Status open_all(std::string* no_device);
  Status measure(std::vector<ResultRow>* rows);

 private:
  std::unique_ptr<EngineUnderTest> make(BackendKind backend, bool read_only) const;
  Result<EngineUnderTest*> open(BackendKind backend);
  Status warm(EngineUnderTest* engine);
  Status measure(const Way& way, uint64_t batch, std::vector<ResultRow>* rows);

  const CrossoverOptions& options_;
  const Progress& progress_;
  Parallel parallel_;
  EngineWorkloadOptions engine_options_;
  std::optional<RandomRecords> random_;
  Records records_;
  EngineSettings settings_;
  std::optional<Expected> expected_;
  std::optional<LookupPlan> lookups_;
  std::optional<ScratchDirectory> directory_;
  std::vector<std::unique_ptr<EngineUnderTest>> handles_;  // after directory_, which they use
  std::vector<Way> ways_;
};

Status Crossover::prepare() {
  progress_.show("making " + with_commas(options_.records.records) + " records");
  random_.emplace(options_.records, &parallel_);
  records_ = random_->view();
  expected_.emplace(&records_, &parallel_);
  const uint64_t batches[] = {options_.max_batch, warming_batch};
  lookups_.emplace(&*expected_, LookupOptions{.seed = options_.records.seed,
                                              .queries = LookupPlan::queries_for(batches),
                                              .min_seconds = options_.min_seconds});
  engine_options_.threads = options_.threads;
  engine_options_.durability = Durability::none;
  engine_options_.stride.value_placement = options_.values;
  settings_ = settings_for(engine_options_, records_);
  Result<ScratchDirectory> directory =
      ScratchDirectory::create(options_.directory, "stride-crossover");
  if (!directory.ok()) return directory.status();
  directory_.emplace(std::move(*directory));
  progress_.show("loading");
  std::unique_ptr<EngineUnderTest> writer = make(BackendKind::host, false);
  STRIDE_TRY(writer->open());
  STRIDE_TRY(writer->write(records_));
  return writer->close();
}

std::unique_ptr<EngineUnderTest> Crossover::make(BackendKind backend, bool read_only) const {
  EngineSettings settings = settings_;
  settings.directory = directory_->path();
  settings.stride.backend = backend;
  settings.stride.read_only = read_only;
  return stride_configurations()[0].make(settings);
}

// The first read of a handle checks what it reads.
Result<EngineUnderTest*> Crossover::open(BackendKind backend) {
  handles_.push_back(make(backend, true));
  EngineUnderTest* engine = handles_.back().get();
  STRIDE_TRY(engine->open());
  ReadCheck check(true);
  STRIDE_TRY(engine->read(check));
  STRIDE_TRY(expected_->check(check));
  return engine;
}

Status Crossover::warm(EngineUnderTest* engine) {
  uint64_t queries = std::max(min_warming_queries, options_.records.records / 4);
  for (uint64_t done = 0; done < queries; done += warming_batch) {
    STRIDE_TRY(lookups_->check(engine, warming_batch));
  }
  return {};
}

Status Crossover::open_all(std::string* no_device) {
  progress_.show("opening");
  Result<EngineUnderTest*> host = open(BackendKind::host);
  if (!host.ok()) return host.status();
  ways_ = {{"single", *host, true}, {"host", *host}};
  if (!options_.use_device) {
    *no_device = "it was not asked for";
    return {};
  }
  Result<EngineUnderTest*> cuda = open(BackendKind::cuda);
  if (cuda.status().code() == StatusCode::unavailable) {
    *no_device = cuda.status().to_string();
    return {};
  }
  if (!cuda.ok()) return cuda.status();
  Result<EngineUnderTest*> automatic = open(BackendKind::automatic);
  if (!automatic.ok()) return automatic.status();
  ways_.push_back({"cuda", *cuda});
  ways_.push_back({"automatic", *automatic});
  progress_.show("warming up");
  for (EngineUnderTest* engine : {*cuda, *automatic}) STRIDE_TRY(warm(engine));
  return {};
}

Status Crossover::measure(const Way& way, uint64_t batch, std::vector<ResultRow>* rows) {
  progress_.show(way.name + ", " + batch_name(batch) + " a call");
  uint64_t size = way.one_by_one ? 1 : batch;
  STRIDE_TRY(lookups_->check(way.engine, size));
  ResultRow row = prototype_for("crossover", engine_options_, expected_->bytes());
  row.engine = "stride";
  row.configuration = way.name;
  row.phase = "lookup_" + batch_name(batch);
  row.numbers["batch"] = static_cast<double>(batch);
  row.numbers["n"] = static_cast<double>(options_.records.records);
  row.numbers["value_bytes"] = options_.records.value_bytes;
  row.numbers["seed"] = static_cast<double>(options_.records.seed);
  STRIDE_TRY(lookups_->time(way.engine, size, Answers::copies, &row.records, &row.seconds));
  row.backend = way.engine->backend();
  rows->push_back(std::move(row));
  return {};
}

Status Crossover::measure(std::vector<ResultRow>* rows) {
  std::vector<ResultRow> all;
  for (uint64_t batch = 1; batch <= options_.max_batch; batch *= 2) {
    for (unsigned repeat = 0; repeat < options_.repeats; ++repeat) {
      for (const Way& way : ways_) STRIDE_TRY(measure(way, batch, &all));
    }
  }
  for (const auto& handle : handles_) STRIDE_TRY(handle->close());
  *rows = medians(all);
  return {};
}

}  // namespace

Status run_crossover(const CrossoverOptions& options, const Progress& progress,
                     std::vector<ResultRow>* rows, std::string* no_device) {
  Crossover crossover(options, progress);
  STRIDE_TRY(crossover.prepare());
  STRIDE_TRY(crossover.open_all(no_device));
  return crossover.measure(rows);
}

}  // namespace stride::benchmark
