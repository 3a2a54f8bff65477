// Judges the planner: for each data set the trees of a broad list are built and searched, beside
// those that the planner chooses.
//
// Regret is the time of a find with a chosen tree over that with the fastest of all that were
// measured, less 1. Trees beyond the limit of memory that the planner keeps are in no list. First
// all trees are measured, one after the other; then the fastest of them and the chosen ones in
// turns, for several rounds, of which the medians count: so noise of the machine meets all alike,
// and the best of many noisy figures is not taken for what it is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"
#include "gpu/backend.h"
#include "gpu/plan/tree_planner.h"

namespace stride::benchmark {

struct PlannerWorkloadOptions {
  std::vector<std::string> data;
  std::vector<uint64_t> keys = {1'000'000};  // of each, at most
  uint64_t queries = 1'000'000;
  QueryLocality locality = QueryLocality::random;
  uint64_t seed = 1;
  uint32_t trees = 0;        // so many random ones in place of the list
  bool flavors = true;       // whether Flavors' lists are judged too
  unsigned rounds = 7;       // of the last comparison
  unsigned threads = 1;      // that make and check data
  std::string training;      // file to append the measured trees to, as train_planner.py reads them
  std::string access_costs;  // AccessCosts::to_text(); empty: measured
};

// Appends for each data set rows with the configurations `best`, `automatic`, `optimal` and
// `learned` (numbers: regret, predicted_per_second, plan_seconds, build_seconds, image_bytes,
// limit_bytes, and to_lower_bound: how many times as fast as std::lower_bound on the host), and
// one of configuration `list` (trees, within_20_percent: the share of trees whose predicted rate is
// within 20 % of the measured one); of configuration `flavors` (regret of the list that the planner
// chooses of Flavors'). A wrong answer ends it.
Status run_planner(const PlannerWorkloadOptions& options, Backend* backend,
                   const Progress& progress, std::vector<ResultRow>* rows);

}  // namespace stride::benchmark
