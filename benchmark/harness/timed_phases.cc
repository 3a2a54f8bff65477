#include "benchmark/harness/timed_phases.h"

#include <algorithm>

#include "benchmark/harness/machine.h"

namespace stride::benchmark {
namespace {

Status time_calls(const TimingOptions& options, const TimedCall& call, ResultRow* row) {
  double seconds = 0, total = 0;
  STRIDE_TRY(call(&seconds));
  std::vector<double> times;
  // What a call says may be the time of a part of what it does.
  Stopwatch all;
  while (times.size() < options.repeats || std::max(total, all.seconds()) < options.min_seconds) {
    STRIDE_TRY(call(&seconds));
    times.push_back(seconds);
    total += seconds;
  }
  auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  row->seconds = *middle;
  row->numbers["repeats"] = static_cast<double>(times.size());
  return {};
}

}  // namespace

Status TimedPhases::measure(const std::string& phase, uint64_t records, const TimedCall& call) {
  progress_->show(name_ + " " + prototype_.engine_name() + " " + phase_title(phase));
  ResultRow row = prototype_;
  row.phase = phase;
  row.records = records;
  return_freed_memory();
  uint64_t resident_before = resident_bytes();
  reset_peak_resident();
  STRIDE_TRY(time_calls(options_, call, &row));
  uint64_t peak = peak_resident_bytes();
  row.peak_rss_bytes = peak > resident_before ? peak - resident_before : 0;
  rows_.push_back(std::move(row));
  return {};
}

}  // namespace stride::benchmark
