#include "benchmark/workloads/tree/answers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "benchmark/harness/expected.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t max_checked = 1'000'000;
constexpr uint64_t min_answers_per_part = 1024;

std::string describe_answer(uint32_t rank) {
  return rank == Location::absent ? "absent" : "rank " + std::to_string(rank);
}
std::string describe_answer(RankInterval ranks) {
  return "ranks [" + std::to_string(ranks.first) + ", " + std::to_string(ranks.last) + ")";
}
bool equal(uint32_t a, uint32_t b) { return a == b; }
bool equal(RankInterval a, RankInterval b) { return a.first == b.first && a.last == b.last; }

// expect(query) is the right answer.
template <class Answer, class Expect>
Status check_answers(const char* search, const KeyColumn& queries, std::span<const Answer> answers,
                     Parallel* parallel, const Expect& expect) {
  uint64_t checked = std::min(queries.size, max_checked);
  auto query_of = [&](uint64_t i) {
    return checked < 2 ? i : i * (queries.size - 1) / (checked - 1);
  };
  std::vector<uint64_t> wrong(parallel->max_parts(), queries.size);  // the first of each part
  parallel->for_parts(checked, min_answers_per_part, [&](unsigned part, uint64_t i, uint64_t end) {
    for (; i < end && wrong[part] == queries.size; ++i) {
      uint64_t query = query_of(i);
      if (!equal(answers[query], expect(queries[query]))) wrong[part] = query;
    }
  });
  uint64_t first = *std::min_element(wrong.begin(), wrong.end());
  if (first == queries.size) return {};
  return Status(StatusCode::corruption, std::string("wrong answer: ") + search + " of query " +
                                            std::to_string(first) + ", " +
                                            describe(queries[first]) + ": expected " +
                                            describe_answer(expect(queries[first])) + ", got " +
                                            describe_answer(answers[first]));
}

}  // namespace

Status check_find_ranks(const SortedColumn& keys, const KeyColumn& queries,
                        std::span<const uint32_t> ranks, Parallel* parallel) {
  return check_answers("find", queries, ranks, parallel, [&](Bytes query) {
    uint64_t rank = keys.lower_bound(query);
    bool found = rank < keys.size() && compare(keys.view()[rank], query) == 0;
    return found ? static_cast<uint32_t>(rank) : Location::absent;
  });
}

Status check_lower_bound(const SortedColumn& keys, const KeyColumn& queries,
                         std::span<const uint32_t> ranks, Parallel* parallel) {
  return check_answers("lower_bound", queries, ranks, parallel,
                       [&](Bytes query) { return static_cast<uint32_t>(keys.lower_bound(query)); });
}

Status check_prefix_interval(const SortedColumn& keys, const KeyColumn& queries,
                             std::span<const RankInterval> ranks, Parallel* parallel) {
  return check_answers("prefix_interval", queries, ranks, parallel,
                       [&](Bytes query) { return keys.prefix_interval(query); });
}

}  // namespace stride::benchmark
