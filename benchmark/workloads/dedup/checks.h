// What is right about the answers of a set, and the checks of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "benchmark/datasets/dedup_data.h"
#include "benchmark/workloads/dedup/batches.h"
#include "storage/status.h"

namespace stride::benchmark {

// Data and what is right about them.
struct Checked {
  DedupData data;
  FirstRows first;

  uint64_t size() const { return data.rows.rows; }
  double duplication() const {
    return 1 - static_cast<double>(first.distinct) / static_cast<double>(size());
  }
};

// The error of a wrong answer. who: what has given it.
Status wrong_vector(const std::string& who, uint64_t row);

// Checks that equal rows have one id, and that one of them was new. ids: empty where there are
// none.
Status check_put(const Checked& checked, const Batches& batches, std::span<const uint64_t> ids,
                 std::span<const uint64_t> was_new);

// Checks that ids are 0, 1, 2, ... in the order of first occurrence.
Status check_dense(const Checked& checked, std::span<const uint64_t> ids);

}  // namespace stride::benchmark
