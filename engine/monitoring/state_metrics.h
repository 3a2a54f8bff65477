// What the tables of a version have, in numbers.
#pragma once

#include <vector>

#include "engine/catalog/version.h"
#include "engine/metrics.h"

namespace stride {

// Both throw std::bad_alloc.
std::vector<TableStatistics> table_statistics(const Version& version);
// All that follows from the version: neither log_bytes, size_bytes, debt_bytes and
// write_amplification nor how the database was opened.
StateMetrics state_metrics(const Version& version);

}  // namespace stride
