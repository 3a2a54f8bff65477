// The compiled part of the Python package: stridedb/__init__.py puts its names together.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "adapters/python/errors.h"
#include "adapters/python/fields.h"
#include "adapters/python/handles.h"
#include "adapters/python/rows.h"

namespace stride::python {
namespace {

void bind_table(nb::module_& module) {
  nb::class_<PyTable> table(module, "Table", "A named, ordered map of keys to rows.",
                            nb::is_weak_referenceable());
  table.def_prop_ro("name", [](const PyTable& t) { return name_object(t.table().name()); })
      .def_prop_ro(
          "schema", [](const PyTable& t) { return t.form->schema.to_string(); },
          "The columns of keys and values, as the text of a schema.")
      .def_prop_ro(
          "key_columns",
          [](const PyTable& t) {
            nb::dict types;
            if (t.form->is_prefixes()) return types;
            for (const Field& field : t.form->schema.key())
              types[nb::cast(field.name)] = type_of(field);
            return types;
          },
          "The types of the key columns, by name.")
      .def_prop_ro(
          "value_columns",
          [](const PyTable& t) {
            nb::dict types;
            for (const Field& field : t.form->schema.values())
              types[nb::cast(field.name)] = type_of(field);
            return types;
          },
          "The types of the columns of values, by name.")
      .def_prop_ro(
          "address_bits", [](const PyTable& t) { return t.form->address_bits; },
          "Bits of the addresses of a prefix table; 0: it is none.")
      .def_prop_ro("_path", [](const PyTable& t) { return path_object(t.handle->absolute_path); })
      .def_prop_ro("_options", [](const PyTable& t) { return options_object(*t.handle); })
      .def_prop_ro("_read_only", [](const PyTable& t) { return t.handle->read_only; })
      .def_prop_ro("_is_of_snapshot", [](const PyTable& t) { return t.at.has_value(); });
  bind_table_reads(table);
  bind_ordered_reads(table);
  bind_cursor(module, table);
  bind_table_writes(table);
  bind_prefixes(table);
}

}  // namespace
}  // namespace stride::python

NB_MODULE(_core, module) {
  using namespace stride::python;
  // The interpreter takes objects that are alive at its end with it; that is no leak to speak of.
  nb::set_leak_warnings(false);
  bind_types(module);
  bind_rows(module);
  bind_table(module);
  bind_database(module);
  bind_transaction(module);
  bind_scan(module);
  bind_sets(module);
  bind_plans(module);
  bind_partition(module);
  bind_device(module);
  bind_maintenance(module);
  bind_salvage(module);
}
