// Longest matches on host threads. As LongestPrefix::longest_match().
#pragma once

#include <cstdint>
#include <span>

#include "gpu/host/task_pool.h"
#include "gpu/longest_prefix.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

Status longest_match_host(TaskPool& pool, const MatchView& matches, const KeyColumn& addresses,
                          std::span<uint32_t> out);

// What any backend checks first.
Status check_addresses(const MatchView& matches, const KeyColumn& addresses);

}  // namespace stride
