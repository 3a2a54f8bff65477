#include "benchmark/harness/lookup_plan.h"

#include <algorithm>
#include <random>

#include "benchmark/harness/engine_run.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t timed_group = 1000;  // queries between two looks at the clock

void store_number(uint64_t number, std::byte* to) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(number >> (56 - 8 * i));
}

// A key that is not there, into `to`.
void draw_missing(const Expected& expected, std::mt19937_64& random, std::byte* to) {
  uint64_t low = 0, high = ~uint64_t{0};
  if (expected.size() != 0) {
    low = key_prefix(expected.key(0));
    high = key_prefix(expected.key(expected.size() - 1));
  }
  for (int attempt = 0;; ++attempt) {
    if (attempt == 8) low = 0, high = ~uint64_t{0};
    store_number(std::uniform_int_distribution<uint64_t>(low, high)(random), to);
    if (!expected.contains(Bytes(to, 8))) return;
  }
}

}  // namespace

uint64_t LookupPlan::queries_for(std::span<const uint64_t> batches) {
  constexpr uint64_t max_queries = 4'000'000;
  uint64_t largest = 1;
  for (uint64_t batch : batches) largest = std::max(largest, batch);
  return std::max(largest, std::min(max_queries, 4 * std::max(largest, uint64_t{250'000})));
}

LookupPlan::LookupPlan(const Expected* expected, const LookupOptions& options)
    : expected_(expected), options_(options) {
  std::mt19937_64 random(options.seed);
  std::bernoulli_distribution misses(expected->size() == 0 ? 1 : options.miss_share);
  std::uniform_int_distribution<uint64_t> any_rank(0, std::max<uint64_t>(1, expected->size()) - 1);
  keys_.reset(8 * options.queries);
  ranks_.reset(options.queries);
  for (uint64_t i = 0; i < options.queries; ++i) {
    if (misses(random)) {
      ranks_[i] = none;
      draw_missing(*expected, random, &keys_[8 * i]);
    } else {
      ranks_[i] = static_cast<uint32_t>(any_rank(random));
      store_number(key_prefix(expected->key(ranks_[i])), &keys_[8 * i]);
    }
  }
}

KeyColumn LookupPlan::next(uint64_t batch) {
  if (at_ + batch > ranks_.size()) at_ = 0;
  KeyColumn keys = queries().slice(at_, batch);
  at_ += batch;
  return keys;
}

Status LookupPlan::ask(EngineUnderTest* engine, const KeyColumn& keys, Answers answers) {
  return answers == Answers::copies ? engine->lookup(keys, &copies_)
                                    : engine->refer(keys, &references_);
}

Status LookupPlan::check(EngineUnderTest* engine, uint64_t batch, Answers answers) {
  for (uint64_t done = 0; done < std::max(batch, timed_group); done += batch) {
    KeyColumn keys = next(batch);
    STRIDE_TRY(ask(engine, keys, answers));
    STRIDE_TRY(check_last(keys, answers));
  }
  return {};
}

Status LookupPlan::time(EngineUnderTest* engine, uint64_t batch, Answers answers, uint64_t* records,
                        double* seconds) {
  *records = 0;
  *seconds = 0;
  uint64_t batches = 0;
  do {
    Stopwatch watch;
    for (uint64_t done = 0; done < std::max(batch, timed_group); done += batch) {
      STRIDE_TRY(ask(engine, next(batch), answers));
      *records += batch;
      ++batches;
    }
    *seconds += watch.seconds();
  } while ((*seconds < options_.min_seconds || batches < options_.min_batches) &&
           *seconds < options_.max_seconds);
  return {};
}

Status LookupPlan::time_twice(EngineUnderTest* engine, uint64_t batch, double* first,
                              double* again) {
  KeyColumn keys = next(batch);
  for (double* seconds : {first, again}) {
    Stopwatch watch;
    STRIDE_TRY(ask(engine, keys, Answers::copies));
    *seconds = watch.seconds();
    STRIDE_TRY(check_last(keys, Answers::copies));
  }
  return {};
}

namespace {

// value(i): the answer to query i, where there is one.
template <class Value>
Status check_each(const Expected& expected, const uint32_t* ranks, const KeyColumn& queries,
                  const Bitmap& found, uint64_t results, const Value& value) {
  auto wrong = [&](uint64_t i, const std::string& what) {
    return Status(StatusCode::corruption,
                  "wrong answer: the look-up of " + describe(queries[i]) + " " + what);
  };
  if (found.size() != queries.size || results != queries.size) {
    return Status(StatusCode::corruption, "wrong answer: a look-up of " +
                                              std::to_string(queries.size) + " keys gave " +
                                              std::to_string(results) + " results");
  }
  for (uint64_t i = 0; i < queries.size; ++i) {
    bool there = ranks[i] != LookupPlan::none;
    if (found[i] != there) {
      return wrong(i, there ? "found nothing, but the key was written"
                            : "found a value, but the key was never written");
    }
    if (there && !expected.has_value(ranks[i], value(i))) {
      return wrong(i, "gave the value " + describe(value(i)) + ", which was not its last");
    }
  }
  return {};
}

}  // namespace

// Precondition: the keys are those of the last next().
Status LookupPlan::check_last(const KeyColumn& keys, Answers answers) const {
  const uint32_t* ranks = ranks_.data() + (at_ - keys.size);
  if (answers == Answers::copies) return check_answers(*expected_, ranks, keys, copies_);
  return check_each(*expected_, ranks, keys, references_.found, references_.locations.size(),
                    [&](uint64_t i) { return references_.value(i); });
}

Status check_answers(const Expected& expected, const uint32_t* ranks, const KeyColumn& queries,
                     const LookupResult& result) {
  return check_each(expected, ranks, queries, result.found, result.values.size,
                    [&](uint64_t i) { return result.values[i]; });
}

}  // namespace stride::benchmark
