#include "benchmark/lookup_plan.h"

#include <algorithm>
#include <random>

#include "benchmark/engine_run.h"

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

Status LookupPlan::check(EngineUnderTest* engine, uint64_t batch) {
  for (uint64_t done = 0; done < std::max(batch, timed_group); done += batch) {
    KeyColumn keys = next(batch);
    STRIDE_TRY(engine->lookup(keys, &result_));
    STRIDE_TRY(check_answers(*expected_, ranks_.data() + (at_ - batch), keys, result_));
  }
  return {};
}

Status LookupPlan::time(EngineUnderTest* engine, uint64_t batch, uint64_t* records,
                        double* seconds) {
  *records = 0;
  *seconds = 0;
  uint64_t batches = 0;
  do {
    Stopwatch watch;
    for (uint64_t done = 0; done < std::max(batch, timed_group); done += batch) {
      STRIDE_TRY(engine->lookup(next(batch), &result_));
      *records += batch;
      ++batches;
    }
    *seconds += watch.seconds();
  } while ((*seconds < options_.least_seconds || batches < options_.least_batches) &&
           *seconds < options_.most_seconds);
  return {};
}

Status check_answers(const Expected& expected, const uint32_t* ranks, const KeyColumn& queries,
                     const LookupResult& result) {
  auto wrong = [&](uint64_t i, const char* what) {
    return Status(StatusCode::corruption,
                  "wrong answer: the look-up of " + describe(queries[i]) + " " + what);
  };
  if (result.found.size() != queries.size || result.values.size != queries.size) {
    return Status(StatusCode::corruption, "wrong answer: a look-up of " +
                                              std::to_string(queries.size) + " keys gave " +
                                              std::to_string(result.values.size) + " results");
  }
  for (uint64_t i = 0; i < queries.size; ++i) {
    bool there = ranks[i] != LookupPlan::none;
    if (result.found[i] != there) {
      return wrong(i, there ? "found nothing, but the key was written"
                            : "found a value, but the key was never written");
    }
    if (there && !expected.has_value(ranks[i], result.values[i])) {
      return wrong(
          i, ("gave the value " + describe(result.values[i]) + ", which was not its last").c_str());
    }
  }
  return {};
}

}  // namespace stride::benchmark
