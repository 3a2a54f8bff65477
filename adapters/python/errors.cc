#include "adapters/python/errors.h"

#include <string_view>

namespace stride::python {
namespace {

const char* class_of(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      break;
    case StatusCode::not_found:
      return "NotFound";
    case StatusCode::already_exists:
      return "AlreadyExists";
    case StatusCode::invalid_argument:
      return "InvalidArgument";
    case StatusCode::corruption:
      return "Corruption";
    case StatusCode::unsupported_version:
      return "UnsupportedVersion";
    case StatusCode::io_error:
      return "StorageError";
    case StatusCode::no_space:
      return "NoSpace";
    case StatusCode::permission_denied:
      return "PermissionDenied";
    case StatusCode::locked:
      return "Locked";
    case StatusCode::read_only:
      return "ReadOnly";
    case StatusCode::poisoned:
      return "Poisoned";
    case StatusCode::resource_exhausted:
      return "ResourceExhausted";
    case StatusCode::closed:
      return "Closed";
    case StatusCode::unavailable:
      return "Unavailable";
    case StatusCode::cancelled:
      return "Cancelled";
    case StatusCode::conflict:
      return "Conflict";
  }
  return "StrideError";
}

[[noreturn]] void throw_exception(const nb::object& exception) {
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

nb::object error_class(const char* name) {
  return nb::module_::import_("stridedb.errors").attr(name);
}

// Bytes that are no UTF-8, as a table's name may have, become replacement characters.
nb::object text(const std::string& bytes) {
  return nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

// What the engine advises are calls and options of C++.
std::string remedy_of(const Status& status) {
  static constexpr std::string_view wrap = "with Overflow::wrap";
  std::string remedy = status.remedy();
  if (const size_t at = remedy.find(wrap); at != std::string::npos)
    remedy.replace(at, wrap.size(), "with wrap=True");
  for (const char* call : {"make_prefix_keys()", "HostBits::"})
    if (remedy.find(call) != std::string::npos)
      return "give texts, or objects of ipaddress: ip_network(prefix, strict=False) clears the "
             "bits behind "
             "a prefix";
  return remedy;
}

}  // namespace

void raise(const Status& status) { raise(status, status.message()); }

void raise(const Status& status, const std::string& message) {
  const nb::object offset = status.offset() ? nb::object(nb::int_(*status.offset())) : nb::none();
  const nb::object file = status.file().empty() ? nb::object(nb::none()) : text(status.file());
  throw_exception(
      error_class(class_of(status.code()))(text(message), file, offset, text(remedy_of(status))));
}

void raise(const char* name, const std::string& message, const std::string& remedy) {
  throw_exception(error_class(name)(text(message), nb::none(), nb::none(), text(remedy)));
}

std::string lossy_text(nb::handle text) {
  PyObject* bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace");
  if (!bytes) throw nb::python_error();
  const auto encoded = nb::steal<nb::bytes>(bytes);
  return {static_cast<const char*>(encoded.data()), encoded.size()};
}

std::string shown(nb::handle value) {
  constexpr size_t longest = 200;
  const nb::object repr = nb::steal(PyObject_Repr(value.ptr()));
  if (!repr.is_valid()) {
    // Numbers of some thousand digits have none, and classes may raise what they like.
    PyErr_Clear();
    return "a value of Python's type " + lossy_text(value.type().attr("__name__"));
  }
  std::string text = lossy_text(repr);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

std::string name_of(nb::handle given) {
  if (!PyUnicode_Check(given.ptr()))
    raise("InvalidType", shown(given) + " is given for a name, which is a text");
  PyObject* bytes = PyUnicode_AsEncodedString(given.ptr(), "utf-8", "surrogateescape");
  if (!bytes) {
    PyErr_Clear();
    raise("InvalidArgument", shown(given) + " is no name, for it has surrogates", "leave them out");
  }
  const auto encoded = nb::steal<nb::bytes>(bytes);
  return {static_cast<const char*>(encoded.data()), encoded.size()};
}

nb::object name_object(const std::string& name) {
  return nb::steal(
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogateescape"));
}

bool is_failed_export(const nb::python_error& error, nb::handle given) {
  if (error.matches(PyExc_ImportError)) return true;
  const bool is_pandas = nb::hasattr(given, "iloc");
  return is_pandas && !error.matches(error_class("StrideError")) &&
         (error.matches(PyExc_ValueError) || error.matches(PyExc_TypeError) ||
          error.matches(PyExc_OverflowError));
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace stride::python
