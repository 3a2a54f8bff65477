// The entries next to the keys of a batch, in key order.
//
//   std::vector<SortedRows> sources;
//   STRIDE_TRY(sorted_rows_of(table, tails, &sources));
//   STRIDE_TRY(find_key_bounds(*version.backend, sources, queries, KeyBound::lower, &result));
#pragma once

#include <cstdint>
#include <span>

#include "engine/lookup_result.h"
#include "engine/read/sorted_rows.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Of each query: the first entry that is not below it, the first one above it, or the last one that
// is not above it.
enum class KeyBound : uint8_t { lower, upper, previous };

// sources: of a table, newest first. Works in blocks of queries on the host's threads, each of
// which allocates its memory once.
Status find_key_bounds(Backend& host, std::span<const SortedRows> sources, const KeyColumn& queries,
                       KeyBound bound, LowerBoundResult* result);

}  // namespace stride
