// Frames that a caller gives: rows in columns with names. They are Arrow data, Rows, pandas'
// DataFrames and dicts of columns.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <vector>

#include "adapters/python/cells.h"

namespace stride::python {

namespace nb = nanobind;

// Whether the object is a frame.
bool is_frame(nb::handle given);

// The columns of these fields, whatever else the frame has.
std::vector<Cells> columns_of_frame(nb::handle given, const std::vector<Field>& fields);

// Calls use(columns) for each batch of the frame, which has a column for each of the fields: one
// that the frame lacks is all null where that is possible. InvalidArgument: a column is missing, or
// the frame has others than these.
using UseBatch = std::function<void(std::vector<Cells> columns)>;
void for_each_batch(nb::handle given, const std::vector<Field>& fields, const UseBatch& use);

// The names of the frame's columns.
std::vector<std::string> column_names(nb::handle given);

}  // namespace stride::python
