#include "benchmark/workloads/dedup/checks.h"

#include <vector>

namespace stride::benchmark {

Status wrong_vector(const std::string& who, uint64_t row) {
  return Status(StatusCode::corruption,
                "wrong answer: " + who + " of vector " + std::to_string(row));
}

Status check_put(const Checked& checked, const Batches& batches, std::span<const uint64_t> ids,
                 std::span<const uint64_t> was_new) {
  std::vector<bool> seen(checked.size());
  uint64_t fresh = 0;
  for (uint64_t i = 0; i < checked.size(); ++i) {
    uint64_t first = checked.first.first[i];
    if (!ids.empty() && ids[i] != ids[first]) return wrong_vector("the id", i);
    if (!batches.bit(was_new, i)) continue;
    if (seen[first]) return wrong_vector("was_new", i);
    seen[first] = true;
    ++fresh;
  }
  if (fresh == checked.first.distinct) return {};
  return Status(StatusCode::corruption,
                "wrong answer: " + std::to_string(fresh) + " new vectors of " +
                    std::to_string(checked.first.distinct) + " different ones");
}

Status check_dense(const Checked& checked, std::span<const uint64_t> ids) {
  uint64_t next = 0;
  for (uint64_t i = 0; i < checked.size(); ++i) {
    if (checked.first.first[i] == i && ids[i] != next++) return wrong_vector("the dense id", i);
  }
  return {};
}

}  // namespace stride::benchmark
