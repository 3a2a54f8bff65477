// Columns of cells that a caller gives, whatever they come in: NumPy arrays and what has their
// interface, Arrow data, lists and other sequences.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/row_columns.h"
#include "storage/schema.h"

namespace stride::python {

namespace nb = nanobind;

// Cells with what they point to, which may be Python's. The GIL is held where one is made; where
// one ends it need not be.
struct Cells {
  Field field;  // of which type they are
  CellColumn column;
  std::vector<std::shared_ptr<const void>> memory;

  uint64_t size() const { return column.size; }
};

// Keeps a Python object until the pointer goes.
std::shared_ptr<const void> keep(nb::object object);

// Memory of the cells' own, of undefined content.
template <class T>
T* add_memory(Cells* cells, uint64_t elements) {
  auto memory = std::make_shared<ResultBuffer<T>>();
  memory->reset(elements);
  cells->memory.push_back(memory);
  return memory->data();
}
// Words of bits that are all 0.
uint64_t* add_bits(Cells* cells, uint64_t rows);

// The column that a caller gave for a column of the type `field`, whose name is for messages:
// anything above. InvalidType, InvalidArgument: it is none, or has a cell that does not fit; the
// message names column and row. Nulls are no error here.
Cells cells_of(nb::handle given, const Field& field);
// The same cells in the type of `field`.
Cells cast_cells(Cells given, const Field& field);

// The object as a NumPy array, a masked one included.
nb::object as_array(nb::handle given);
// A NumPy array. What is masked, and NaT, is null.
Cells cells_of_array(nb::object array, const std::string& name);
// The elements of a NumPy array of one dimension or more.
nb::list list_of_array(nb::handle array, const std::string& name);
// A list with a cell for each element, or None. It may change while its elements are asked what
// they are.
Cells cells_of_list(const nb::list& list, const Field& field);
// Whether the object has Arrow's PyCapsule interface.
bool is_arrow(nb::handle given);
// A Series or DataFrame of Polars that has columns of its type Object: is_arrow() is false.
bool has_polars_objects(nb::handle given);
// Arrow data of one column, or of all its chunks.
Cells cells_of_arrow(nb::handle given, const std::string& name);
Cells joined(std::vector<Cells> chunks, const std::string& name);

// One cell. as_cell() appends the cell's bytes, of which strings and bytes of any length have as
// many as they like. None is not handled here.
void append_cell(const Field& field, nb::handle value, std::string* bytes);
// The cell as Python has it: an int, a str, a datetime, an array of a vector, ...
nb::object object_of(const Field& field, Bytes cell);

// Whether it is a network of `ipaddress`, which is one prefix although it can be iterated over,
// address by address.
bool is_network(nb::handle given);

// "int"
std::string python_type(nb::handle value);
// "column 'score'"
std::string column_name(const Field& field);
// InvalidType: the column does not take what is there.
[[noreturn]] void raise_type(const Field& field, const std::string& given,
                             const std::string& remedy = {});

}  // namespace stride::python
