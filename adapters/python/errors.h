// Failures as Python exceptions: those of stridedb/errors.py.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "adapters/python/unlocked.h"
#include "storage/status.h"

namespace stride::python {

namespace nb = nanobind;

// Throws the exception of a status that is not ok. The GIL is held.
[[noreturn]] void raise(const Status& status);
// The same with another message.
[[noreturn]] void raise(const Status& status, const std::string& message);
// name: of a class in stridedb/errors.py. remedy: what to do, or empty.
[[noreturn]] void raise(const char* name, const std::string& message,
                        const std::string& remedy = {});

inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
template <class T>
T take(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(*result);
}

// Calls work(), which uses no Python, without the GIL, and checks the status that it returns.
template <class Work>
void run(const Work& work) {
  Status status;
  {
    const Unlocked unlocked;
    status = work();
  }
  check(status);
}

// A new reference that a call of Python's has returned. Throws the error where it has failed.
inline nb::object made(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

// What repr() says of an object, for messages: not longer than a line, and whatever the object
// does.
std::string shown(nb::handle value);
// The characters of a text, for messages; those that UTF-8 lacks as Python's own escapes.
std::string lossy_text(nb::handle text);
// The bytes of a table's name, which need be no UTF-8: then they are surrogates in Python, as in
// the names of files. InvalidType, InvalidArgument: it is no text, or has other surrogates.
std::string name_of(nb::handle given);
nb::object name_object(const std::string& name);

// Whether another library could not make Arrow data of its objects, so that there may be another
// way: pandas needs pyarrow for it, and has columns that pyarrow does not take.
bool is_failed_export(const nb::python_error& error, nb::handle given);

// Whether the user has pressed Ctrl-C: then it throws KeyboardInterrupt. The GIL is held.
void check_signals();
// The same in a loop that makes or reads Python's objects, which is to call it for each row.
inline void check_signals_at(uint64_t row) {
  if (row % 65'536 == 65'535) check_signals();
}

// Calls work(first, rows) as run() does, for one part of all rows after the other: Ctrl-C ends the
// call between two of them.
template <class Work>
void run_in_parts(uint64_t rows, uint64_t part_rows, const Work& work) {
  uint64_t first = 0;
  do {
    check_signals();
    run([&] { return work(first, std::min(part_rows, rows - first)); });
    first += part_rows;
  } while (first < rows);
}

}  // namespace stride::python
