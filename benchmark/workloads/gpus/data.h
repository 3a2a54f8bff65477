// The keys, values, prefixes, queries and right answers of the workload, in host memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "benchmark/datasets/route_tables.h"
#include "benchmark/datasets/tree_keys.h"
#include "benchmark/workloads/gpus/workload.h"
#include "gpu/backend.h"

namespace stride::benchmark {

inline constexpr uint32_t set_words = 4;

struct GpusData {
  // invalid_argument: files without prefixes of IPv4, and what TreeKeys and read_routes() return.
  static Result<std::unique_ptr<GpusData>> make(const GpusOptions& options, Backend& host,
                                                Parallel* parallel);

  PackedColumn packed_keys() const;
  PackedColumn packed_values() const;

  std::optional<TreeKeys> keys;
  uint32_t value_bytes = 0;
  BulkVector<std::byte> values;  // of each key, made of its rank
  std::vector<std::byte> tree;
  OwnedColumn queries;
  BulkVector<uint32_t> found, lower_bounds;  // the right answers
  std::optional<RouteTable> routes;
  std::vector<std::byte> matches;
  OwnedColumn addresses;
  BulkVector<uint32_t> matched;
  std::vector<uint32_t> targets;  // of numbers that are added up; they are these numbers too
  std::vector<int32_t> sums;
  BulkVector<uint32_t> vectors;  // of set_words each, of which vector_numbers says which are equal
  BulkVector<uint32_t> vector_numbers;
  uint64_t different_vectors = 0;

  // corruption: not what a set may say of its vectors that were put when it was empty.
  Status check_put(std::span<const uint64_t> ids, std::span<const uint64_t> was_new) const;

 private:
  Status replace_queries(const GpusOptions& options, Parallel* parallel);
  void make_vectors(const GpusOptions& options, Parallel* parallel);
  Status make_keys(const GpusOptions& options, Backend& host, Parallel* parallel);
  Status make_sums(const GpusOptions& options, Backend& host);
  Status make_routes(const GpusOptions& options, Backend& host, Parallel* parallel);
};

// Byte `at` of the value of the key with this rank.
inline std::byte value_byte(uint64_t rank, uint32_t at) {
  return static_cast<std::byte>((rank + 1) * 0x9E3779B97F4A7C15ull >> (at % 7 * 8));
}

}  // namespace stride::benchmark
