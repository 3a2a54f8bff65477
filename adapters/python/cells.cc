#include "adapters/python/cells.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include "adapters/python/errors.h"
#include "adapters/python/rows.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

bool is_sequence_of_cells(nb::handle given) {
  return !nb::isinstance<nb::str>(given) && !nb::isinstance<nb::bytes>(given) &&
         !nb::isinstance<nb::dict>(given) && nb::hasattr(given, "__iter__") && !is_network(given);
}

// Whether NumPy can make an array of it without looking at its elements.
bool is_array_like(nb::handle given) {
  return nb::hasattr(given, "__array__") || nb::hasattr(given, "__dlpack__") ||
         PyMemoryView_Check(given.ptr()) || nb::hasattr(given, "typecode");
}

Cells cells_of_interface(nb::object array, const Field& field) {
  const nb::object kind = array.attr("dtype").attr("kind");
  const std::string text = nb::cast<std::string>(nb::str(kind));
  const bool of_objects = text == "O" || text == "U" || text == "T" ||
                          (text == "S" && field.type == FieldType::bytes && !field.count);
  if (of_objects) return cells_of_list(list_of_array(array, field.name), field);
  return cast_cells(cells_of_array(array, field.name), field);
}

}  // namespace

std::shared_ptr<const void> keep(nb::object object) {
  return {new nb::object(std::move(object)), [](const void* kept) {
            if (!Py_IsInitialized() || is_left_behind()) return;
            nb::gil_scoped_acquire locked;
            delete static_cast<const nb::object*>(kept);
          }};
}

uint64_t* add_bits(Cells* cells, uint64_t rows) {
  const uint64_t words = (rows + 63) / 64;
  auto* bits = add_memory<uint64_t>(cells, std::max<uint64_t>(words, 1));
  std::fill_n(bits, words, 0);
  return bits;
}

bool is_network(nb::handle given) { return nb::hasattr(given, "prefixlen"); }

std::string python_type(nb::handle value) {
  return lossy_text(nb::object(nb::handle(value.type()).attr("__name__")));
}

std::string column_name(const Field& field) { return "column " + in_quotes(field.name); }

void raise_type(const Field& field, const std::string& given, const std::string& remedy) {
  raise("InvalidType", column_name(field) + " is of type " + type_text(field) + ", and " + given,
        remedy);
}

Cells cells_of(nb::handle given, const Field& field) {
  if (nb::isinstance<PyColumn>(given))
    return cast_cells(nb::cast<const PyColumn&>(given).cells, field);
  if (nb::hasattr(given, "__array_interface__")) return cells_of_interface(as_array(given), field);
  if (nb::isinstance<nb::list>(given)) return cells_of_list(nb::borrow<nb::list>(given), field);
  if (is_arrow(given)) {
    try {
      return cast_cells(cells_of_arrow(given, field.name), field);
    } catch (nb::python_error& error) {
      if (!is_failed_export(error, given)) throw;
    }
  }
  // An array of pandas, whose missing cells NumPy does not know.
  if (nb::hasattr(given, "__arrow_array__") && !is_arrow(given) &&
      nb::cast<std::string>(nb::str(given.type().attr("__module__"))).starts_with("pandas"))
    return cells_of(nb::module_::import_("pandas").attr("Series")(given), field);
  if (nb::hasattr(given, "__cuda_array_interface__"))
    raise_type(field, "the memory of a device is given",
               "copy it to the host first; only keys of get() and match() may lie on a device");
  if (is_array_like(given)) return cells_of_interface(as_array(given), field);
  if (!is_sequence_of_cells(given))
    raise_type(field, "one " + python_type(given) + " is given in place of a column",
               "give an array, a list, or Arrow data");
  return cells_of_list(nb::borrow<nb::list>(made(PySequence_List(given.ptr()))), field);
}

Cells joined(std::vector<Cells> chunks, const std::string& name) {
  if (chunks.size() == 1) return std::move(chunks[0]);
  Cells all;
  all.field = chunks.empty() ? Field{.name = name, .type = FieldType::bytes, .nullable = true}
                             : chunks[0].field;
  uint64_t rows = 0, bytes = 0;
  bool has_nulls = false;
  for (const Cells& chunk : chunks) {
    const CellColumn& column = chunk.column;
    rows += column.size;
    has_nulls |= column.valid != nullptr;
    bytes += column.offsets ? column.offsets[column.size] - column.offsets[0]
                            : column.size * column.width;
  }
  const uint32_t width = cell_width(all.field);
  auto* data = add_memory<std::byte>(&all, std::max<uint64_t>(bytes, 1));
  uint64_t* ends = width ? nullptr : add_memory<uint64_t>(&all, rows + 1);
  uint64_t* valid = has_nulls ? add_bits(&all, rows) : nullptr;
  uint64_t row = 0, end = 0;
  if (ends) ends[0] = 0;
  for (const Cells& chunk : chunks) {
    for (uint64_t i = 0; i < chunk.column.size; ++i, ++row) {
      const Bytes cell = chunk.column[i];
      if (!cell.empty()) std::memcpy(data + end, cell.data(), cell.size());
      end += cell.size();
      if (ends) ends[row + 1] = end;
      if (valid && chunk.column.is_there(i)) valid[row / 64] |= uint64_t{1} << (row % 64);
    }
  }
  all.column = {data, ends, valid, rows, width, width};
  return all;
}

}  // namespace stride::python
