#include "benchmark/harness/value_refs.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace stride::benchmark {
namespace {

constexpr uint64_t min_refs_per_part = 2048;

// The bitmap is kept where it has the right size: a batch of one should not pay for memory.
void clear_found(uint64_t n, Bitmap* found) {
  if (found->size() == n) {
    std::fill(found->words().begin(), found->words().end(), 0);
  } else {
    *found = Bitmap(n);
  }
}

uint64_t sum_sizes(const Bytes* values, uint64_t n) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < n; ++i) bytes += values[i].size();
  return bytes;
}

// Queries [begin, end), whose values start at `at`.
void copy_values(const ResultBuffer<Bytes>& values, uint64_t begin, uint64_t end, uint64_t at,
                 LookupResult* result) {
  for (uint64_t i = begin; i < end; ++i) {
    result->offsets[i] = at;
    if (values[i].data() == nullptr) continue;
    result->found.set(i);
    if (values[i].empty()) continue;
    std::memcpy(result->data.data() + at, values[i].data(), values[i].size());
    at += values[i].size();
  }
}

void finish(uint64_t n, uint64_t bytes, LookupResult* result) {
  result->offsets[n] = bytes;
  result->values = ValueColumn::variable(result->data.data(), result->offsets.data(), n);
}

}  // namespace

void gather_few_values(const ResultBuffer<Bytes>& values, LookupResult* result) {
  uint64_t n = values.size(), bytes = sum_sizes(values.data(), n);
  clear_found(n, &result->found);
  result->offsets.reset(n + 1);
  result->data.reset(bytes);
  copy_values(values, 0, n, 0, result);
  finish(n, bytes, result);
}

void gather_values(const ResultBuffer<Bytes>& values, Parallel* parallel, LookupResult* result) {
  uint64_t n = values.size(), total = 0;
  if (n < 2 * min_refs_per_part) return gather_few_values(values, result);
  clear_found(n, &result->found);
  result->offsets.reset(n + 1);
  std::vector<uint64_t> starts(parallel->max_parts());
  parallel->for_parts(n, min_refs_per_part, [&](unsigned part, uint64_t begin, uint64_t end) {
    starts[part] = sum_sizes(values.data() + begin, end - begin);
  });
  for (uint64_t& start : starts) total += std::exchange(start, total);
  result->data.reset(total);
  parallel->for_parts(n, min_refs_per_part, [&](unsigned part, uint64_t begin, uint64_t end) {
    copy_values(values, begin, end, starts[part], result);
  });
  finish(n, total, result);
}

}  // namespace stride::benchmark
