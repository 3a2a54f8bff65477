// Bounds of ranges of keys.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "adapters/python/fields.h"
#include "engine/scan.h"

namespace stride::python {

// A key, or for keys of several columns a tuple of the first ones. None: no bound.
std::optional<std::string> bound_of(const TableForm& form, nanobind::handle given);
// The bounds of a scan. None: there is no such bound.
ScanOptions range_of(const TableForm& form, nanobind::handle start, nanobind::handle stop,
                     nanobind::handle prefix);

}  // namespace stride::python
