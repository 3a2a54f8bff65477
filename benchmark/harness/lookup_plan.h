// Queries made before the clock starts, and what they must find.
//
//   LookupPlan plan(expected, {.seed = 1, .queries = 4'000'000, .miss_share = 0.1});
//   s = plan.check(&engine, 1000);                    // untimed: every answer of some batches
//   s = plan.time(&engine, 1000, Answers::copies, &records, &seconds);
#pragma once

#include <cstdint>
#include <span>

#include "benchmark/harness/engine_under_test.h"

namespace stride::benchmark {

// The values are copied into one column, or referred to where they lie.
enum class Answers : uint8_t { copies, references };

struct LookupOptions {
  uint64_t seed = 1;
  uint64_t queries = 1'000'000;
  double miss_share = 0.1;   // of queries for keys that are not there
  double min_seconds = 0.2;  // that a timed phase takes, ...
  uint64_t min_batches = 3;  // ... unless it does not do that many batches by then, but
  double max_seconds = 3;    // ... at the most, one batch at least
};

// Keys have 8 bytes. Existing keys are drawn uniformly, with repetition; the others lie uniformly
// between the smallest and the largest key, or anywhere where those are dense.
class LookupPlan {
 public:
  LookupPlan(const Expected* expected, const LookupOptions& options);

  // How many queries such batches should be cut from.
  static uint64_t queries_for(std::span<const uint64_t> batches);

  // Looks up one batch, or as many as make a thousand queries, and compares every answer.
  Status check(EngineUnderTest* engine, uint64_t batch, Answers answers = Answers::copies);
  // Only the calls of lookup() or refer() are timed, in groups of a thousand queries or more.
  Status time(EngineUnderTest* engine, uint64_t batch, Answers answers, uint64_t* records,
              double* seconds);
  // One batch, and the same again, with the seconds of each. Compares the answers to both.
  Status time_twice(EngineUnderTest* engine, uint64_t batch, double* first, double* again);

  KeyColumn queries() const { return KeyColumn::fixed(keys_.data(), 8, ranks_.size()); }
  // The rank that query i finds, or none.
  static constexpr uint32_t none = 0xFFFFFFFF;
  uint32_t rank(uint64_t query) const { return ranks_[query]; }

 private:
  KeyColumn next(uint64_t batch);
  Status ask(EngineUnderTest* engine, const KeyColumn& keys, Answers answers);
  Status check_last(const KeyColumn& keys, Answers answers) const;

  const Expected* expected_;
  LookupOptions options_;
  ResultBuffer<std::byte> keys_;
  ResultBuffer<uint32_t> ranks_;
  uint64_t at_ = 0;  // where the next batch begins
  // Reused: their memory is there before the clock starts.
  LookupResult copies_;
  FindResult references_;
};

// Compares the answers to queries whose ranks these are.
Status check_answers(const Expected& expected, const uint32_t* ranks, const KeyColumn& queries,
                     const LookupResult& result);

}  // namespace stride::benchmark
