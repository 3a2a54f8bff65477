#include "benchmark/harness/engine_run.h"

#include "benchmark/harness/machine.h"

namespace stride::benchmark {

Status explain(const std::string& name, const Status& status) {
  if (status.ok()) return status;
  Status explained(status.code(), name + ": " + status.message());
  if (!status.file().empty()) explained = std::move(explained).with_file(status.file());
  if (status.offset()) explained = std::move(explained).with_offset(*status.offset());
  if (!status.remedy().empty()) explained = std::move(explained).with_remedy(status.remedy());
  return explained;
}

EngineRun::EngineRun(const EngineConfiguration& configuration, EngineSettings settings,
                     ScratchDirectory directory, const ResultRow& prototype,
                     const Progress* progress)
    : configuration_(configuration),
      settings_(std::move(settings)),
      directory_(std::move(directory)),
      prototype_(prototype),
      progress_(progress) {
  settings_.directory = directory_.path();
  engine_ = configuration_.make(settings_);
  prototype_.engine = configuration_.engine;
  prototype_.configuration = configuration_.configuration;
  prototype_.is_database = configuration_.is_database;
}

void EngineRun::show(const std::string& phase) const {
  progress_->show(configuration_.name() + " " + phase_title(phase));
}

Status EngineRun::start() {
  show("open");
  return_freed_memory();
  resident_before_ = resident_bytes();
  return engine_->open();
}

Status EngineRun::measure(const std::string& phase, uint64_t records,
                          const std::function<Status()>& work) {
  return measure_parts(phase, [&](uint64_t* done, double* seconds) -> Status {
    Stopwatch watch;
    Status status = work();
    *seconds = watch.seconds();
    *done = records;
    return status;
  });
}

Status EngineRun::measure_parts(const std::string& phase,
                                const std::function<Status(uint64_t*, double*)>& work) {
  show(phase);
  ResultRow row = prototype_;
  row.phase = phase;
  reset_peak_resident();
  STRIDE_TRY(work(&row.records, &row.seconds));
  uint64_t peak = peak_resident_bytes();
  row.peak_rss_bytes = peak > resident_before_ ? peak - resident_before_ : 0;
  row.backend = engine_->backend();
  rows_.push_back(std::move(row));
  return {};
}

Status EngineRun::reopen(uint64_t records) {
  STRIDE_TRY(engine_->close());
  bytes_on_disk_ = directory_.bytes();
  return measure("open", records, [&] { return engine_->open(); });
}

Status EngineRun::close_and_limit_memory(uint64_t bytes) {
  STRIDE_TRY(engine_->close());
  bytes_on_disk_ = directory_.bytes();
  settings_.stride.memory_limit_bytes = bytes;
  engine_ = configuration_.make(settings_);
  return {};
}

Status EngineRun::finish(std::vector<ResultRow>* rows) {
  Status status = engine_->close();
  engine_.reset();
  for (ResultRow& row : rows_) {
    row.bytes_on_disk = bytes_on_disk_;
    rows->push_back(std::move(row));
  }
  rows_.clear();
  progress_->show("");
  return status;
}

}  // namespace stride::benchmark
