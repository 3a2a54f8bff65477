// The rows that a commit has of a table, once it has collected them: before and behind the sort.
#pragma once

#include <cstdint>

#include "engine/write/staged_rows.h"
#include "engine/write/staging.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// Not sorted yet. Precondition: the table outlives them.
StagedRows rows_of(const StagedTable& table);
// How many there were before the sort.
uint64_t staged_rows(const StagedRows& rows);
bool any_tombstones(const StagedRows& rows);
// Where nothing lies below, a tombstone hides nothing. Throws StopRequested.
void drop_tombstones(StagedRows* rows);

// Rows that are put and that no row behind them hides.
class KeptPuts {
 public:
  // Throws StopRequested, as the call below.
  explicit KeptPuts(const StagedRows& rows);

  uint64_t kept() const { return kept_; }
  // already_exists where there are others.
  Status check_all(const TableRecord& table) const;

 private:
  const StagedRows& rows_;
  uint64_t staged_ = 0, kept_ = 0;
};

}  // namespace stride
