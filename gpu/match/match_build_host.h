// Builds what longest_match() searches. As LongestPrefix::build_matches().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/host/task_pool.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

Status build_matches_host(TaskPool& pool, const PackedColumn& prefixes, uint32_t address_bits,
                          std::vector<std::byte>* image, std::vector<uint32_t>* parents);

// The same of addresses of up to max_tree_address_bits with the passes of a device (match_build.h),
// which take twice the work and many threads. The prefixes have passed check_prefixes().
void build_matches_parallel(TaskPool& pool, const PackedColumn& prefixes, uint32_t address_bits,
                            std::vector<std::byte>* image, std::vector<uint32_t>* parents);

// As TaskPool::run() and ExecutionContext::parallel_for().
using ParallelFor = std::function<void(uint64_t n, uint64_t grain,
                                       const std::function<void(uint64_t, uint64_t)>& body)>;
// What any backend checks first.
Status check_prefixes(const ParallelFor& run, const PackedColumn& prefixes, uint32_t address_bits);

}  // namespace stride
