// Longest-prefix match of routes: how fast what is searched is built and searched, beside a plain
// binary search over the same intervals, alone and as a table of a database; and how fast a table
// takes updates while it is searched.
//
// For every family of addresses in the files, prefixes and addresses are made before a clock
// starts. The index alone, with one thread and with all: build, match_uniform, match_table. The
// binary search: the same. On a device: build (of prefixes and into an image in host memory), and
// matches of addresses, and into ranks, in its own memory, in pinned host memory and in any host
// memory, beside the bound that the bus sets. A database: load (a commit of all prefixes),
// match_uniform and match_table with locations and lengths as results, then, for some seconds,
// commits of
// --update-batch changed prefixes beside a loop of matches: update, match_meanwhile. Untimed: every
// answer is compared with the binary search's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/route_tables.h"
#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/timed_phases.h"
#include "engine/options.h"

namespace stride::benchmark {

struct LpmOptions {
  std::vector<std::string> prefixes;                       // files
  std::vector<std::string> addresses{"uniform", "table"};  // or files
  uint64_t queries = 10'000'000;
  uint64_t update_rate = 100'000;  // prefixes a second that are tried; 0: no updates
  uint64_t update_batch = 1000;    // of one commit
  double update_seconds = 3;
  Durability durability = Durability::none;  // of updates
  BackendKind backend = BackendKind::automatic;
  unsigned threads = 1;
  uint64_t seed = 1;
  TimingOptions timing;
  std::string directory = ".";
};

// Appends a row for each phase, with the numbers prefixes, boundaries, bytes_per_prefix (of the
// index) and threads and the text `table`. The first failure or wrong answer ends it.
Status run_lpm(const LpmOptions& options, const Progress& progress, std::vector<ResultRow>* rows);

}  // namespace stride::benchmark
