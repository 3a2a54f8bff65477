// What reads return: columns of cells, for NumPy, Arrow and Python.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapters/python/cells.h"
#include "storage/column.h"

namespace stride::python {

namespace nb = nanobind;

// A column. It stays as it is whatever becomes of the database.
struct PyColumn {
  Cells cells;
};

// Columns of as many rows.
struct PyRows {
  std::vector<Cells> columns;  // their fields have names
  uint64_t size = 0;
  // Says which rows of a lookup are there. Null: all are.
  std::shared_ptr<const Bitmap> found;
};

// Capsules of Arrow's interface.
nb::object export_arrow_schema(const std::vector<const Cells*>& columns, bool frame);
nb::object export_arrow_array(const std::vector<const Cells*>& columns, bool frame, uint64_t rows);
nb::object export_arrow_stream(const std::vector<const Cells*>& columns, uint64_t rows);

// An array of NumPy; of numbers and times it is a view of the cells. fill: what missing cells
// become, or None where there may be none.
nb::object numpy_of(const Cells& cells, nb::handle fill);
nb::object list_of(const Cells& cells);
// An array of booleans.
nb::object booleans_of(const uint64_t* bits, uint64_t rows);

// An array of numbers that are filled in before anybody sees them.
struct Numbers64 {
  Cells cells;
  std::span<uint64_t> span;

  Numbers64(const char* name, uint64_t n) {
    auto* data = add_memory<uint64_t>(&cells, std::max<uint64_t>(n, 1));
    cells.field = {.name = name, .type = FieldType::u64};
    cells.column = CellColumn::fixed(data, 8, n);
    span = {data, n};
  }
  nb::object array() const { return numpy_of(cells, nb::none()); }
};

void bind_rows(nb::module_& module);

}  // namespace stride::python
