// Weights mapping, T[R[i]] += S[i], all the way: from the keys of the sources to T.
//
// A database has a mapping table, from each source's key to the number of its target. Sources
// are all of these keys, in an order of their own; each goes to a random target. Phases:
//   prepare  the keys are looked up, and what maps is made of their targets
//   map      one S is mapped with that
//   whole    both at once (map_weights), for one S
// The plain loop looks the keys up in std::unordered_map, and adds on one thread. T is 0 before
// each call; to clear it is not timed. On a device S and T lie in its memory, or in the host's;
// `stream` is a number of calls that are started one after the other and waited for once. Untimed:
// every T is compared with one that was added up in doubles, or in 64 bits; reproducible ones
// also with each other, by their bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/tree_keys.h"
#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"
#include "benchmark/harness/timed_phases.h"
#include "engine/options.h"
#include "gpu/scatter_add.h"

namespace stride::benchmark {

struct MapOptions {
  KeyKind keys;
  uint64_t sources = 4'000'000;  // of a file, at most
  uint64_t targets = 500'000;
  std::vector<NumberType> types{NumberType::f32};
  std::vector<ScatterMode> modes{ScatterMode::fast, ScatterMode::reproducible};
  uint64_t calls = 100;  // on a stream
  bool with_stride = true, with_loop = true;
  BackendKind backend = BackendKind::automatic;
  unsigned threads = 1;
  std::string directory = ".";  // of the database
  uint64_t seed = 1;
  TimingOptions timing;
};

// Appends a row for each phase, with the texts keys and type, and mode and memory where they count,
// and the numbers targets, threads and, of plans, bytes_per_source. The first failure or
// wrong answer ends it.
Status run_map(const MapOptions& options, const Progress& progress, std::vector<ResultRow>* rows);

// For each type: rates, time of a map, and how they compare with the plain loop.
std::string map_tables(const std::vector<ResultRow>& rows);

}  // namespace stride::benchmark
