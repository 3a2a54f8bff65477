// Lookups whose keys and results lie in the memory of a device: stridedb/_device.py allocates them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/handles.h"
#include "storage/prefix_key.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

// Where the cells of each key column begin, and the bytes from one to the next.
using DeviceColumns = std::vector<std::pair<uintptr_t, uint64_t>>;

template <class T>
T* pointer(uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

uint32_t key_width(const TableForm& form) {
  if (form.is_prefixes() || form.schema.key_width() == 0)
    raise(
        "InvalidArgument",
        "keys of table '" + form.table.name() + "' have no one width: " + form.schema.to_string(),
        "copy the keys to the host; on a device keys are of numbers, UUIDs and bytes of one width");
  return form.schema.key_width();
}

// Starts to make the keys, or takes cells that are keys already.
Status make_keys(const TableForm& form, const Snapshot& snapshot, const DeviceColumns& given,
                 uint64_t rows, uintptr_t keys, uintptr_t stream, KeyColumn* queries) {
  const std::vector<Field>& fields = form.schema.key();
  const bool as_stored = fields.size() == 1 &&
                         (fields[0].type == FieldType::bytes || fields[0].type == FieldType::uuid);
  if (as_stored && given[0].second == form.schema.key_width()) {
    *queries = Column::fixed(pointer<void>(given[0].first), form.schema.key_width(), rows);
    return {};
  }
  std::vector<CellColumn> columns;
  for (size_t i = 0; i < fields.size(); ++i) {
    CellColumn column =
        CellColumn::fixed(pointer<void>(given[i].first), cell_width(fields[i]), rows);
    column.stride = given[i].second;
    columns.push_back(column);
  }
  *queries = Column::fixed(pointer<void>(keys), form.schema.key_width(), rows);
  return snapshot.make_keys_device(form.table, columns, pointer<std::byte>(keys),
                                   pointer<void>(stream));
}

void check_columns(const TableForm& form, const DeviceColumns& given) {
  if (given.size() != form.schema.key().size())
    raise("InvalidArgument", "keys of table '" + form.table.name() + "' have " +
                                 std::to_string(form.schema.key().size()) + " columns, and " +
                                 std::to_string(given.size()) + " are given");
}

// Calls search(snapshot, queries) with the keys that the columns are, on the stream.
template <class Search>
void search_keys(const PyTable& table, const DeviceColumns& given, uint64_t rows, uintptr_t keys,
                 uintptr_t stream, const Search& search) {
  const TableForm& form = *table.form;
  check_columns(form, given);
  const Snapshot snapshot = table.snapshot();
  run([&]() -> Status {
    KeyColumn queries;
    STRIDE_TRY(make_keys(form, snapshot, given, rows, keys, stream, &queries));
    return search(snapshot, queries);
  });
}

void get(const PyTable& table, const DeviceColumns& given, uint64_t rows, uintptr_t keys,
         uintptr_t values, uintptr_t there, uintptr_t stream) {
  DeviceValues out;
  out.values = pointer<std::byte>(values);
  out.width = table.form->schema.fixed_bytes();
  out.there = pointer<uint8_t>(there);
  search_keys(table, given, rows, keys, stream,
              [&](const Snapshot& snapshot, const KeyColumn& queries) {
                return snapshot.get_device(table.table(), queries, out, pointer<void>(stream));
              });
}

void find(const PyTable& table, const DeviceColumns& given, uint64_t rows, uintptr_t keys,
          uintptr_t locations, uintptr_t stream) {
  search_keys(table, given, rows, keys, stream,
              [&](const Snapshot& snapshot, const KeyColumn& queries) {
                return snapshot.find_device(table.table(), queries, pointer<Location>(locations),
                                            pointer<void>(stream));
              });
}

// Bytes of an address, and of the key of a prefix, whose last byte is its length in bits.
std::pair<uint32_t, uint32_t> match_widths(const PyTable& table) {
  const TableForm& form = *table.form;
  constexpr uint32_t max_bits = 128;
  if (!form.is_prefixes() || form.address_bits > max_bits)
    raise("InvalidArgument",
          "table '" + form.table.name() + "' has no prefixes that a device searches",
          "those of addresses of up to 128 bits are; copy the addresses to the host");
  return {address_bytes(form.address_bits), prefix_key_width(form.address_bits)};
}

// Addresses are rows of bytes, the highest first. prefixes: room for the keys of what is found.
void match(const PyTable& table, uintptr_t addresses, uint64_t rows, uintptr_t locations,
           uintptr_t prefixes, uintptr_t values, uintptr_t there, uintptr_t stream) {
  const auto [address_width, prefix_width] = match_widths(table);
  const KeyColumn queries = Column::fixed(pointer<void>(addresses), address_width, rows);
  GatheredRows out;
  out.keys = pointer<std::byte>(prefixes);
  out.key_width = prefix_width;
  out.values = pointer<std::byte>(values);
  out.value_width = table.form->schema.fixed_bytes();
  out.there = pointer<uint8_t>(there);
  const Snapshot snapshot = table.snapshot();
  run([&]() -> Status {
    auto* found = pointer<Location>(locations);
    STRIDE_TRY(snapshot.match_device(table.table(), queries, found, pointer<void>(stream)));
    return snapshot.rows_device(table.table(), found, rows, out, pointer<void>(stream));
  });
}

// Name, type, place and width of each column of values, and the bytes of a row.
nb::tuple layout(const PyTable& table) {
  const Schema& schema = table.form->schema;
  if (!schema.is_fixed())
    raise("InvalidArgument",
          "values of table '" + table.table().name() +
              "' have columns of any length: " + schema.to_string(),
          "copy the keys to the host; values of one width are read on a device");
  nb::list columns;
  for (size_t i = 0; i < schema.values().size(); ++i) {
    const Field& field = schema.values()[i];
    columns.append(nb::make_tuple(field.name, std::string(to_string(field.type)), field.count,
                                  field.nullable, schema.offset(i), schema.width(i)));
  }
  return nb::make_tuple(columns, schema.fixed_bytes());
}

}  // namespace

void bind_device(nb::module_& module) {
  module.def("_layout", layout);
  module.def("_key_width", [](const PyTable& table) { return key_width(*table.form); });
  module.def("_get_device", get, nb::arg("table"), nb::arg("columns"), nb::arg("rows"),
             nb::arg("keys"), nb::arg("values"), nb::arg("there"), nb::arg("stream"));
  module.def("_find_device", find, nb::arg("table"), nb::arg("columns"), nb::arg("rows"),
             nb::arg("keys"), nb::arg("locations"), nb::arg("stream"));
  module.def("_match_widths", match_widths);
  module.def("_match_device", match, nb::arg("table"), nb::arg("addresses"), nb::arg("rows"),
             nb::arg("locations"), nb::arg("prefixes"), nb::arg("values"), nb::arg("there"),
             nb::arg("stream"));
}

}  // namespace stride::python
