// Tables as of a time: rows that have ended by then are tombstones for whoever reads them.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/catalog/version.h"

namespace stride {

// The check of a table's rows; one that hides nothing where they do not end.
inline ExpiryCheck expiry_at(const TableRecord& table, int64_t now) {
  return table.expiry ? table.expiry->at(now) : ExpiryCheck();
}

// The segments with other objects in the place of those that may have rows which have ended: these
// share files and memory with them. Where there are none it is the same list. now: as
// ExpiryClock::now().
SegmentList segments_at(const TableRecord& table, const SegmentList& segments, int64_t now);
// The same of a table. Null: it is the same.
std::shared_ptr<const TableVersion> table_at(const TableVersion& table, int64_t now);

}  // namespace stride
