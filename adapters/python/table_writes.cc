// Writes to a table, each a transaction of its own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/writes.h"

namespace stride::python {
namespace {

using Durability = std::optional<std::string>;

template <class Stage>
void change(const PyTable& table, CommitArguments arguments, const Stage& stage) {
  check_writable(table);
  arguments.forms = {table.form};
  StagedChanges transaction(table.handle->opened().begin());
  stage(&transaction);
  commit(&transaction, arguments);
}

bool refuses(const std::string& on_equal) {
  if (on_equal == "error") return true;
  if (on_equal == "last") return false;
  raise("InvalidArgument", "on_equal is '" + on_equal + "'", "it may be 'last', 'error'");
}

void put(const PyTable& table, nb::handle data, nb::handle values, const std::string& on_equal,
         const Durability& durability, nb::object progress) {
  KeptRows kept;
  change(table, {durability, refuses(on_equal), progress},
         [&](StagedChanges* t) { stage_put(t, *table.form, data, values, &kept); });
}

nb::object put_if_absent(const PyTable& table, nb::handle data, nb::handle values,
                         const Durability& durability) {
  std::vector<std::vector<uint64_t>> bits;
  std::vector<uint64_t> sizes;
  change(table, {durability}, [&](StagedChanges* t) {
    stage_put_if_absent(t, *table.form, data, values, &bits, &sizes);
  });
  return joined_bits(bits, sizes);
}

}  // namespace

void bind_table_writes(nb::class_<PyTable>& table) {
  table
      .def("put", put, nb::arg("data").none(), nb::arg("values").none() = nb::none(), nb::kw_only(),
           nb::arg("on_equal") = "last", nb::arg("durability").none() = nb::none(),
           nb::arg("progress").none() = nb::none(),
           "Puts rows: a frame (a DataFrame, Arrow data, a dict of columns) with all columns of "
           "the table, or "
           "keys and values: columns with as many rows, or a key and a value. All of it is there "
           "afterwards, or nothing. on_equal: 'last' takes the last of equal keys, 'error' raises "
           "AlreadyExists. durability: 'sync', 'flush' or 'none'; None: that of the database. "
           "progress: called with a share from 0 to 1; an exception of it ends the commit. "
           "InvalidArgument: a null in a key, columns that are missing, unknown or of other sizes, "
           "values out of range. InvalidType: cells of a type that the column does not take. "
           "ReadOnly: the database or a snapshot is for reading.")
      .def(
          "__setitem__",
          [](const PyTable& t, nb::handle key, nb::handle value) {
            change(t, {}, [&](StagedChanges* w) { stage_set(w, *t.form, key, value); });
          },
          nb::arg("key").none(), nb::arg("value").none())
      .def("put_if_absent", put_if_absent, nb::arg("data").none(),
           nb::arg("values").none() = nb::none(), nb::kw_only(),
           nb::arg("durability").none() = nb::none(),
           "Puts those rows whose key is not there, and returns which: an array of booleans.")
      .def(
          "add",
          [](const PyTable& t, nb::handle keys, nb::object deltas, const Durability& durability) {
            change(t, {durability}, [&](StagedChanges* w) { stage_add(w, *t.form, keys, deltas); });
          },
          nb::arg("keys").none(), nb::arg("deltas") = 1, nb::kw_only(),
          nb::arg("durability").none() = nb::none(),
          "Adds to counters: deltas[i] to that of keys[i], or one number to all. A key that is not "
          "there has 0. InvalidArgument: the table has no counters, or a sum is out of range; then "
          "nothing is added.")
      .def(
          "delete",
          [](const PyTable& t, nb::handle keys, const Durability& durability) {
            change(t, {durability}, [&](StagedChanges* w) { stage_delete(w, *t.form, keys); });
          },
          nb::arg("keys").none(), nb::kw_only(), nb::arg("durability").none() = nb::none(),
          "Deletes a key or a column of keys. That one is not there is no error.")
      .def(
          "__delitem__",
          [](const PyTable& t, nb::handle key) {
            change(t, {}, [&](StagedChanges* w) { stage_delete(w, *t.form, key); });
          },
          nb::arg("key").none())
      .def(
          "delete_range",
          [](const PyTable& t, nb::handle start, nb::handle stop, const Durability& durability) {
            change(t, {durability},
                   [&](StagedChanges* w) { stage_delete_range(w, *t.form, start, stop); });
          },
          nb::arg("start").none() = nb::none(), nb::arg("stop").none() = nb::none(), nb::kw_only(),
          nb::arg("durability").none() = nb::none(),
          "Deletes the keys from `start` on that are below `stop`.");
}

}  // namespace stride::python
