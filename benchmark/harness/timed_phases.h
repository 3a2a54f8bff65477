// Times calls that can be repeated at will, and makes a row of each phase.
//
//   TimedPhases phases({.repeats = 3, .min_seconds = 0.2}, prototype, &progress);
//   s = phases.measure("find", n, timed([&] { return backend->tree_index().find_ranks(...); }));
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/report.h"

namespace stride::benchmark {

// "1 thread", "2 threads"
inline std::string threads_name(unsigned threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

// Makes a call, and says how long it took, or the part of it that counts.
using TimedCall = std::function<Status(double* seconds)>;

template <class Call>
TimedCall timed(const Call& call) {
  return [call](double* seconds) -> Status {
    Stopwatch watch;
    Status status = call();
    *seconds = watch.seconds();
    return status;
  };
}

// Tests, which look at no figure, make it shorter.
inline double usual_min_seconds = 0.2;

struct TimingOptions {
  unsigned repeats = 3;                    // calls at least, after one that warms up
  double min_seconds = usual_min_seconds;  // that they take in all
};

class TimedPhases {
 public:
  // `prototype` has what all rows share; `name` is shown to the person who waits.
  TimedPhases(const TimingOptions& options, ResultRow prototype, std::string name,
              const Progress* progress)
      : options_(options),
        prototype_(std::move(prototype)),
        name_(std::move(name)),
        progress_(progress) {}

  // Adds a row with the median time of a call (of an even number, the slower of the two in the
  // middle).
  Status measure(const std::string& phase, uint64_t records, const TimedCall& call);
  std::vector<ResultRow>& rows() { return rows_; }

 private:
  TimingOptions options_;
  ResultRow prototype_;
  std::string name_;
  const Progress* progress_;
  std::vector<ResultRow> rows_;
};

}  // namespace stride::benchmark
