// Bulk find-or-put of vectors: how fast sets of vectors, or of byte strings, find duplicates,
// beside std::unordered_set and the machine's random accesses to memory.
//
// Vectors are made before a clock starts, and lie where they are searched. A set has room for just
// the different ones, so that its table is as full in the end as was asked for, and does not grow.
// Phases: find_or_put of all vectors into an empty set (emptying is not timed), find of the same
// vectors, get of the ids of those that were new. On host threads, one and all; on a device with
// vectors, ids and bits in its memory, in pinned and in any host memory. Byte strings are put only,
// on the host, into a new set each time. std::unordered_set has room for all that is different too,
// and is emptied untimed. Untimed: every answer is compared with what sorting the vectors says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/dedup_data.h"
#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/timed_phases.h"
#include "engine/options.h"
#include "gpu/vector_set.h"

namespace stride::benchmark {

struct DedupOptions {
  DedupDataOptions data;  // but for the words
  std::vector<uint64_t> words{2};
  std::vector<VectorForm> forms{VectorForm::dense};
  std::vector<double> loads{0.8};
  std::vector<uint64_t> buckets{0};  // slots; 0: what measures best
  uint32_t neighbours = 0;
  bool wide_nodes = false;
  uint64_t batch = 0;  // vectors of one call; 0: all
  bool with_stride = true, with_unordered_set = true;
  BackendKind backend = BackendKind::automatic;
  unsigned threads = 1;
  TimingOptions timing;
};

// Appends a row for each phase, with the texts data and form and the numbers words, distinct,
// duplication (as it came out), load, bytes_per_vector, threads, and gathers_per_second of memory
// as large as the set or up to twice as large. Also nodes of compressed sets, and batch, bucket and
// neighbours where they were chosen. The first failure or wrong answer ends it.
Status run_dedup(const DedupOptions& options, const Progress& progress,
                 std::vector<ResultRow>* rows);

// The same with one thing changed at a time, of which each row says which (the text `sweep`) and to
// what (the text `value`); the number `is_default` is 1 where that is the ordinary choice. On a
// device, with all in its memory, or on all host threads. `options` has one of each.
Status run_dedup_sweep(const DedupOptions& options, const Progress& progress,
                       std::vector<ResultRow>* rows);

const char* form_name(VectorForm form);

}  // namespace stride::benchmark
