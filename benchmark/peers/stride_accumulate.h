// StrideDB under the benchmark of accumulation.
#pragma once

#include <span>
#include <vector>

#include "benchmark/accumulate_engine.h"

namespace stride {
class Database;
class Table;
}  // namespace stride

namespace stride::benchmark {

// defaults  default options, a transaction for each batch
std::vector<AccumulateConfiguration> stride_accumulate_configurations();

// The number of keys[i] += deltas[i], for each i, in one transaction; keys that are not there begin
// with 0. Reads the numbers of all keys that occur, adds on the calling thread, and puts the sums:
// nobody else may write these keys meanwhile.
Status accumulate_with_stride(Database* database, const Table& table, const KeyColumn& keys,
                              std::span<const int64_t> deltas);

}  // namespace stride::benchmark
