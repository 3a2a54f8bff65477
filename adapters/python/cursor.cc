// Rows one at a time, in either direction from any key.
#include "engine/cursor.h"

#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "adapters/python/bounds.h"
#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/reads.h"
#include "adapters/python/transaction.h"

namespace stride::python {
namespace {

struct PyCursor {
  PyTable table;
  std::optional<Cursor> cursor;  // none: it was closed
  bool has_moved = false;
  bool is_yielded = false;  // the entry that it is at, by the iteration
  // A cursor is of one thread at a time. Its owner uses no Python meanwhile: another thread may
  // wait for it with the GIL held. The GIL is kept, as for t[key], because most steps take less
  // time than to get it back.
  std::mutex mutex;

  PyCursor(PyTable t, Cursor c) : table(std::move(t)), cursor(std::move(c)) {}
};

// Calls use(cursor), which returns a status, alone, and throws what that says.
template <class Use>
void use_alone(PyCursor& c, const Use& use) {
  Status status;
  {
    std::lock_guard lock(c.mutex);
    status =
        c.cursor
            ? use(*c.cursor)
            : Status(StatusCode::closed, "the cursor is closed").with_remedy("make another one");
  }
  check(status);
}

// Moves the cursor. Returns whether it is at an entry then.
template <class Move>
bool move(PyCursor& c, const Move& move) {
  bool is_valid = false;
  use_alone(c, [&](Cursor& cursor) {
    move(cursor);
    c.has_moved = true;
    c.is_yielded = false;
    is_valid = cursor.valid();
    return cursor.status();
  });
  return is_valid;
}

std::string key_bytes(const PyCursor& c, nb::handle key) {
  std::string bytes;
  append_key(*c.table.form, key, true, &bytes);
  return bytes;
}

Status check_valid(const Cursor& cursor) {
  if (cursor.valid()) return {};
  STRIDE_TRY(cursor.status());
  return Status::invalid("the cursor is at no row")
      .with_remedy("move it first; what moves it returns whether there is a row");
}

nb::object key_of(PyCursor& c) {
  std::string key;
  use_alone(c, [&](const Cursor& cursor) {
    STRIDE_TRY(check_valid(cursor));
    key.assign(as_text(cursor.key()));
    return Status();
  });
  return key_object(*c.table.form, as_bytes(key));
}

nb::object object_of_value(const TableForm& form, Bytes value) {
  if (form.bare_value) return value_object(form, value, {}, true);
  return value_object(form, value, wanted_columns(form, std::nullopt), false);
}

nb::object value_of(PyCursor& c) {
  std::string value;
  use_alone(c, [&](const Cursor& cursor) {
    STRIDE_TRY(check_valid(cursor));
    value.assign(as_text(cursor.value()));
    return Status();
  });
  return object_of_value(*c.table.form, as_bytes(value));
}

// The row that the cursor is at, unless it was yielded: then the one behind it.
nb::object next_item(PyCursor& c) {
  std::string key, value;
  bool is_there = false;
  use_alone(c, [&](Cursor& cursor) {
    if (!c.has_moved)
      cursor.seek_to_first();
    else if (c.is_yielded)
      cursor.next();
    c.has_moved = c.is_yielded = true;
    is_there = cursor.valid();
    if (!is_there) return cursor.status();
    key.assign(as_text(cursor.key()));
    value.assign(as_text(cursor.value()));
    return Status();
  });
  if (!is_there) throw nb::stop_iteration();
  const TableForm& form = *c.table.form;
  return nb::make_tuple(key_object(form, as_bytes(key)), object_of_value(form, as_bytes(value)));
}

void close(PyCursor& c) {
  std::optional<Cursor> closed;
  std::lock_guard lock(c.mutex);
  closed.swap(c.cursor);
}

// Source: a Snapshot, or a Transaction.
template <class Source>
std::unique_ptr<PyCursor> make_cursor(Source& source, const PyTable& table, nb::handle start,
                                      nb::handle stop, nb::handle prefix) {
  const TableForm& form = *table.form;
  ScanOptions range = range_of(form, start, stop, prefix);
  const CursorOptions options{std::move(range.from), std::move(range.to), std::move(range.prefix)};
  std::optional<Cursor> cursor;
  run([&]() -> Status {
    Result<Cursor> made = source.cursor(form.table, options);
    if (!made.ok()) return made.status();
    cursor.emplace(std::move(*made));
    return {};
  });
  return std::make_unique<PyCursor>(table, std::move(*cursor));
}

void bind_moves(nb::class_<PyCursor>& cursor) {
  cursor
      .def(
          "seek",
          [](PyCursor& c, nb::handle key) {
            const std::string bytes = key_bytes(c, key);
            return move(c, [&](Cursor& to) { to.seek(as_bytes(bytes)); });
          },
          nb::arg("key").none(), "Moves to the first row whose key is not smaller.")
      .def(
          "seek_for_previous",
          [](PyCursor& c, nb::handle key) {
            const std::string bytes = key_bytes(c, key);
            return move(c, [&](Cursor& to) { to.seek_for_previous(as_bytes(bytes)); });
          },
          nb::arg("key").none(), "Moves to the last row whose key is not greater.")
      .def(
          "seek_to_first",
          [](PyCursor& c) { return move(c, [](Cursor& to) { to.seek_to_first(); }); },
          "Moves to the first row of the range.")
      .def(
          "seek_to_last",
          [](PyCursor& c) { return move(c, [](Cursor& to) { to.seek_to_last(); }); },
          "Moves to the last row of the range.")
      .def(
          "next", [](PyCursor& c) { return move(c, [](Cursor& to) { to.next(); }); },
          "Moves to the next row. Where it is at none, nothing happens.")
      .def(
          "previous", [](PyCursor& c) { return move(c, [](Cursor& to) { to.previous(); }); },
          "Moves to the row before. Where it is at none, nothing happens.");
}

constexpr const char* cursor_text =
    "Rows one at a time, in either direction from any key, as the table was when the cursor was "
    "made. What moves it returns whether it is at a row then, as `valid`: at first it is at none, "
    "nor behind either end. Iteration yields pairs of key and value from the row that it is at, "
    "or from the first one where it was not moved yet, and moves it along.";

}  // namespace

void bind_cursor(nb::module_& module, nb::class_<PyTable>& table) {
  nb::class_<PyCursor> cursor(module, "Cursor", cursor_text);
  bind_moves(cursor);
  cursor
      .def_prop_ro(
          "valid",
          [](PyCursor& c) {
            std::lock_guard lock(c.mutex);
            return c.cursor && c.cursor->valid();
          },
          "Whether it is at a row.")
      .def_prop_ro("key", key_of, "The row's key. InvalidArgument: it is at none.")
      .def_prop_ro("value", value_of,
                   "The row's value, as table[key] has it. InvalidArgument: it is at none.")
      .def("__iter__",
           [](nb::object self) {
             auto& c = nb::cast<PyCursor&>(self);
             std::lock_guard lock(c.mutex);
             c.is_yielded = false;
             return self;
           })
      .def("__next__", next_item)
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__", [](PyCursor& c, nb::handle, nb::handle, nb::handle) { close(c); },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none())
      .def("close", close, "Gives up what it reads. Whatever moves it raises Closed from then on.");
  table.def(
      "cursor",
      [](const PyTable& t, nb::handle start, nb::handle stop, nb::handle prefix) {
        const Snapshot snapshot = t.snapshot();
        return make_cursor(snapshot, t, start, stop, prefix);
      },
      nb::arg("start").none() = nb::none(), nb::arg("stop").none() = nb::none(), nb::kw_only(),
      nb::arg("prefix").none() = nb::none(),
      "A Cursor over the keys from `start` on that are below `stop`, or, as of scan(), those of a "
      "prefix.");
}

void bind_cursor(nb::class_<PyTransaction>& transaction) {
  transaction.def(
      "cursor",
      [](PyTransaction& t, const PyTable& table, nb::handle start, nb::handle stop,
         nb::handle prefix) {
        const TransactionUse use(t);
        return make_cursor(t.reading(table), table, start, stop, prefix);
      },
      nb::arg("table"), nb::arg("start").none() = nb::none(), nb::arg("stop").none() = nb::none(),
      nb::kw_only(), nb::arg("prefix").none() = nb::none(),
      "As Table.cursor(), with the transaction's changes so far. What it passes over counts as "
      "read, also keys that are not there. When the transaction has ended, whatever moves it "
      "raises Closed.");
}

}  // namespace stride::python
