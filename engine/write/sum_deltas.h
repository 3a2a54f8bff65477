// Adds deltas to what their keys have.
#pragma once

#include "engine/catalog/version.h"
#include "engine/write/collect_deltas.h"

namespace stride {

// bases: empty, for zeros. sums: of each slot, numbers of the table's type one after the other: its
// base and its deltas. invalid_argument: one does not fit, where that is an error.
Status sum_deltas(const Version& version, const TableRecord& table, const Deltas& deltas,
                  const BulkVector<std::byte>& bases, BulkVector<std::byte>* sums);

}  // namespace stride
