// Bounds of ranges of keys.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "adapters/python/fields.h"

namespace stride::python {

// A key, or for keys of several columns a tuple of the first ones. None: no bound.
std::optional<std::string> bound_of(const TableForm& form, nanobind::handle given);

}  // namespace stride::python
