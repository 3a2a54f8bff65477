#include "benchmark/workloads/dedup/workload.h"

#include "benchmark/workloads/dedup/run.h"

namespace stride::benchmark {
namespace {

// Every form, load and number of slots, in every place.
Status measure_sets(const DedupOptions& options, const Checked& checked, DedupRun* run) {
  std::vector<SetPlace> places;
  if (options.backend != BackendKind::cuda) {
    for (unsigned threads : run->thread_counts()) places.push_back(run->host_place(threads));
  }
  if (run->device()) {
    for (const Side& side : sides) places.push_back(run->device_place(side));
  }
  for (VectorForm form : options.forms) {
    for (double load : options.loads) {
      for (uint64_t bucket : options.buckets) {
        SetChoice choice{form, load, bucket, options.neighbours, options.wide_nodes};
        for (const SetPlace& place : places) STRIDE_TRY(run->measure_set(checked, choice, place));
      }
    }
  }
  return {};
}

}  // namespace

const char* form_name(VectorForm form) {
  return form == VectorForm::dense ? "dense" : form == VectorForm::slots ? "slots" : "compressed";
}

Status run_dedup(const DedupOptions& options, const Progress& progress,
                 std::vector<ResultRow>* rows) {
  DedupRun run(options, progress, rows);
  bool text = is_text(options.data.kind);
  if (!text) STRIDE_TRY(run.open_device());
  for (uint64_t words : options.words) {
    DedupDataOptions data = options.data;
    data.words = static_cast<uint32_t>(words);
    Checked checked;
    STRIDE_TRY(run.make(data, &checked));
    if (options.with_stride && text) {
      for (unsigned threads : run.thread_counts()) STRIDE_TRY(run.measure_bytes(checked, threads));
    } else if (options.with_stride) {
      STRIDE_TRY(measure_sets(options, checked, &run));
    }
    if (options.with_unordered_set) STRIDE_TRY(run.measure_unordered(checked));
  }
  return {};
}

}  // namespace stride::benchmark
