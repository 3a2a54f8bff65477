// How many entries ranges of keys have.
//
//   uint64_t rows;
//   STRIDE_TRY(count_range(*version.backend, sources, from, to, &rows));
//
// From ranks alone where no more than one source has rows in a range, and it has no tombstones.
// Else the oldest of them is taken as a whole, if that is so of it, and each key of the newer ones
// is looked for there; or, where these have as many rows, all are merged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/read/sorted_rows.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Keys from `from` on and below `to`; null: no bound. Many rows that have to be looked at are
// shared out among the host's threads.
Status count_range(Backend& host, std::span<const SortedRows> sources, std::optional<Bytes> from,
                   std::optional<Bytes> to, uint64_t* rows);
// The same for a batch of ranges: keys from from[i] on and below to[i]. invalid_argument: from, to
// and rows are not of one size.
Status count_ranges(Backend& host, std::span<const SortedRows> sources, const KeyColumn& from,
                    const KeyColumn& to, std::span<uint64_t> rows);

}  // namespace stride
