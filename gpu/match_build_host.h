// Builds what longest_match() searches. As Backend::build_matches().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/task_pool.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

Status build_matches_host(TaskPool& pool, const PackedColumn& prefixes, uint32_t address_bits,
                          std::vector<std::byte>* image, std::vector<uint32_t>* parents);

// What any backend checks first.
Status check_prefixes(TaskPool& pool, const PackedColumn& prefixes, uint32_t address_bits);

}  // namespace stride
