// Transactions: changes of several tables that are there as a whole or not at all.
#include "adapters/python/transaction.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/reads.h"

namespace stride::python {
namespace {

// Calls stage(). When it fails a part may be staged: then the transaction has ended.
template <class Stage>
auto change(PyTransaction& transaction, const PyTable& table, const Stage& stage) {
  const TransactionUse use(transaction);
  check_writable(table);
  StagedChanges& staged = transaction.use(table);
  try {
    return stage(&staged);
  } catch (...) {
    transaction.failed = transaction.failed_inside = true;
    transaction.staged.reset();
    throw;
  }
}

void commit_all(PyTransaction& transaction, const std::optional<std::string>& durability,
                nb::object progress) {
  const TransactionUse use(transaction);
  StagedChanges staged = std::move(transaction.ongoing());
  transaction.staged.reset();
  commit(&staged, {durability, false, std::move(progress), transaction.forms});
  transaction.committed = true;
}

void abort(PyTransaction& transaction) {
  const TransactionUse use(transaction);
  transaction.staged.reset();
}

nb::object was_new(PyTransaction& transaction) {
  const TransactionUse use(transaction);
  if (!transaction.committed)
    raise("InvalidArgument", "which rows were put is known once the transaction is committed",
          "call was_new() after commit()");
  return joined_bits(transaction.bits, transaction.sizes);
}

std::unique_ptr<PyTransaction> begin(const PyDatabase& db, bool reads) {
  auto transaction = std::make_unique<PyTransaction>();
  transaction->handle = db.handle;
  Database& opened = db.handle->opened();
  if (reads)
    transaction->staged.emplace(opened.transaction());
  else
    transaction->staged.emplace(opened.begin());
  return transaction;
}

void bind_ends(nb::class_<PyTransaction>& transaction) {
  transaction
      .def("__enter__",
           [](nb::object self) {
             nb::cast<PyTransaction&>(self).failed_inside = false;
             return self;
           })
      .def(
          "__exit__",
          [](PyTransaction& t, nb::handle type, nb::handle, nb::handle) {
            // Where an exception was caught inside, nothing is there of what came before it.
            if (!t.staged && !(t.failed_inside && type.is_none())) return;
            if (type.is_none())
              commit_all(t, std::nullopt, nb::none());
            else
              abort(t);
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none())
      .def("commit", commit_all, nb::kw_only(), nb::arg("durability").none() = nb::none(),
           nb::arg("progress").none() = nb::none(),
           "Makes the changes visible and durable, and ends. durability: 'sync', 'flush' or "
           "'none'; None: that of the database. progress: called with a share from 0 to 1. An "
           "exception of it or Ctrl-C: nothing has changed.")
      .def("abort", abort, "Drops the changes, and ends.")
      .def("was_new", was_new,
           "After the commit: which rows of put_if_absent() were put, as an array of booleans.")
      .def_prop_ro(
          "staged_rows",
          [](PyTransaction& t) {
            const TransactionUse use(t);
            return t.ongoing().staged_rows();
          },
          "Rows, keys that are deleted and deltas so far. Closed: the transaction has ended.");
}

}  // namespace

void bind_transaction(nb::module_& module) {
  nb::class_<PyTransaction> transaction(
      module, "Transaction",
      "Changes that are committed together at the end of a `with` block, and dropped "
      "where it ends with an exception.");
  transaction
      .def(
          "_create_table",
          [](PyTransaction& t, nb::handle name, nb::object key, nb::object values) {
            const TransactionUse use(t);
            const TableOptions options = options_of_columns(std::move(key), std::move(values));
            return PyTable{t.handle,
                           form_of(take(t.ongoing().create_table(name_of(name), options))),
                           std::nullopt};
          },
          nb::arg("name"), nb::arg("key").none(), nb::arg("values").none())
      .def("_rename_table",
           [](PyTransaction& t, const PyTable& table, nb::handle new_name) {
             change(t, table, [&](StagedChanges* w) {
               check(w->rename_table(table.table(), name_of(new_name)));
             });
           })
      .def(
          "put",
          [](PyTransaction& t, const PyTable& table, nb::handle data, nb::handle values) {
            change(t, table, [&](StagedChanges* w) { stage_put(w, *table.form, data, values); });
          },
          nb::arg("table"), nb::arg("data").none(), nb::arg("values").none() = nb::none(),
          "As Table.put().")
      .def(
          "put_if_absent",
          [](PyTransaction& t, const PyTable& table, nb::handle data, nb::handle values) {
            change(t, table, [&](StagedChanges* w) {
              return stage_put_if_absent(w, *table.form, data, values, &t.bits, &t.sizes);
            });
          },
          nb::arg("table"), nb::arg("data").none(), nb::arg("values").none() = nb::none(),
          "As Table.put_if_absent(), after all other changes of the transaction, in whatever order "
          "they are made: a key that these put or add to is there, one that they delete is not. "
          "was_new() tells which rows were put.")
      .def(
          "add",
          [](PyTransaction& t, const PyTable& table, nb::handle keys, nb::handle deltas) {
            change(t, table, [&](StagedChanges* w) { stage_add(w, *table.form, keys, deltas); });
          },
          nb::arg("table"), nb::arg("keys").none(), nb::arg("deltas") = 1, "As Table.add().")
      .def(
          "delete",
          [](PyTransaction& t, const PyTable& table, nb::handle keys) {
            change(t, table, [&](StagedChanges* w) { stage_delete(w, *table.form, keys); });
          },
          nb::arg("table"), nb::arg("keys").none(), "As Table.delete().")
      .def(
          "delete_range",
          [](PyTransaction& t, const PyTable& table, nb::handle start, nb::handle stop) {
            change(t, table,
                   [&](StagedChanges* w) { stage_delete_range(w, *table.form, start, stop); });
          },
          nb::arg("table"), nb::arg("start").none() = nb::none(),
          nb::arg("stop").none() = nb::none(), "As Table.delete_range().");
  transaction
      .def(
          "get",
          [](PyTransaction& t, const PyTable& table, nb::handle keys, nb::object otherwise,
             const std::optional<std::vector<std::string>>& columns) {
            const TransactionUse use(t);
            return get_in(t.reading(table), table, keys, otherwise, columns);
          },
          nb::arg("table"), nb::arg("keys").none(), nb::arg("default") = nb::none(),
          nb::arg("columns").none() = nb::none(),
          "As Table.get(), with the transaction's own changes. What it has got must not change "
          "until the commit: else that raises Conflict.")
      .def(
          "contains",
          [](PyTransaction& t, const PyTable& table, nb::handle keys) {
            const TransactionUse use(t);
            return contains_in(t.reading(table), table, keys);
          },
          nb::arg("table"), nb::arg("keys").none(),
          "Whether the key is there, or as Table.contains(); get() says what that means for the "
          "commit.");
  bind_ordered_reads(transaction);
  bind_cursor(transaction);
  bind_ends(transaction);
  module.def("_begin", begin, nb::arg("database"), nb::arg("reads"));
}

}  // namespace stride::python
