// Transactions: changes of several tables that are there as a whole or not at all.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/writes.h"

namespace stride::python {
namespace {

struct PyTransaction {
  std::shared_ptr<Handle> handle;
  std::atomic<bool> in_use = false;
  std::optional<WriteTransaction> staged;   // none: it has ended
  std::vector<std::vector<uint64_t>> bits;  // of put_if_absent
  std::vector<uint64_t> sizes;
  std::vector<std::shared_ptr<const TableForm>> forms;  // of the tables that it has changed
  bool committed = false;

  WriteTransaction* open(const PyTable& table) {
    check_writable(table);
    if (table.handle != handle)
      raise("InvalidArgument", "table '" + table.table().name() + "' is of another database");
    if (std::ranges::find(forms, table.form) == forms.end()) forms.push_back(table.form);
    return &ongoing();
  }
  WriteTransaction& ongoing() {
    if (!staged) raise("Closed", "the transaction has ended", "begin another one");
    return *staged;
  }
};

// A call of a transaction, which is the only one as long as it goes on: not another thread's, and
// none that an object makes which this one reads.
class Use {
 public:
  explicit Use(PyTransaction& transaction) : in_use_(transaction.in_use) {
    if (in_use_.exchange(true))
      raise("InvalidArgument", "the transaction is in use by a call that goes on",
            "use it from one thread at a time, or begin one for each thread");
  }
  ~Use() { in_use_ = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic<bool>& in_use_;
};

// Calls stage(). When it fails a part may be staged: then the transaction has ended.
template <class Stage>
auto change(PyTransaction& transaction, const PyTable& table, const Stage& stage) {
  const Use use(transaction);
  WriteTransaction* staged = transaction.open(table);
  try {
    return stage(staged);
  } catch (...) {
    transaction.staged.reset();
    throw;
  }
}

void commit_all(PyTransaction& transaction, const std::optional<std::string>& durability,
                nb::object progress) {
  const Use use(transaction);
  WriteTransaction staged = std::move(transaction.ongoing());
  transaction.staged.reset();
  commit(&staged, {durability, false, std::move(progress), transaction.forms});
  transaction.committed = true;
}

void abort(PyTransaction& transaction) {
  const Use use(transaction);
  transaction.staged.reset();
}

nb::object was_new(PyTransaction& transaction) {
  const Use use(transaction);
  if (!transaction.committed)
    raise("InvalidArgument", "which rows were put is known once the transaction is committed",
          "call was_new() after commit()");
  return joined_bits(transaction.bits, transaction.sizes);
}

std::unique_ptr<PyTransaction> begin(const PyDatabase& db) {
  auto transaction = std::make_unique<PyTransaction>();
  transaction->handle = db.handle;
  transaction->staged.emplace(db.handle->opened().begin());
  return transaction;
}

void bind_ends(nb::class_<PyTransaction>& transaction) {
  transaction.def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__",
          [](PyTransaction& t, nb::handle type, nb::handle, nb::handle) {
            if (!t.staged) return;
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
            const Use use(t);
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
          "put",
          [](PyTransaction& t, const PyTable& table, nb::handle data, nb::handle values) {
            change(t, table, [&](WriteTransaction* w) { stage_put(w, *table.form, data, values); });
          },
          nb::arg("table"), nb::arg("data").none(), nb::arg("values").none() = nb::none(),
          "As Table.put().")
      .def(
          "put_if_absent",
          [](PyTransaction& t, const PyTable& table, nb::handle data, nb::handle values) {
            change(t, table, [&](WriteTransaction* w) {
              return stage_put_if_absent(w, *table.form, data, values, &t.bits, &t.sizes);
            });
          },
          nb::arg("table"), nb::arg("data").none(), nb::arg("values").none() = nb::none(),
          "As Table.put_if_absent(); was_new() tells which rows were put.")
      .def(
          "add",
          [](PyTransaction& t, const PyTable& table, nb::handle keys, nb::handle deltas) {
            change(t, table, [&](WriteTransaction* w) { stage_add(w, *table.form, keys, deltas); });
          },
          nb::arg("table"), nb::arg("keys").none(), nb::arg("deltas") = 1, "As Table.add().")
      .def(
          "delete",
          [](PyTransaction& t, const PyTable& table, nb::handle keys) {
            change(t, table, [&](WriteTransaction* w) { stage_delete(w, *table.form, keys); });
          },
          nb::arg("table"), nb::arg("keys").none(), "As Table.delete().")
      .def(
          "delete_range",
          [](PyTransaction& t, const PyTable& table, nb::handle start, nb::handle stop) {
            change(t, table,
                   [&](WriteTransaction* w) { stage_delete_range(w, *table.form, start, stop); });
          },
          nb::arg("table"), nb::arg("start").none() = nb::none(),
          nb::arg("stop").none() = nb::none(), "As Table.delete_range().");
  bind_ends(transaction);
  module.def("_begin", begin);
}

}  // namespace stride::python
