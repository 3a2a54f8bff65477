#include "adapters/python/arrow_stream.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>

#include "adapters/python/errors.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

// Moves what a structure of a producer owns into one that is released with the pointer.
template <class T>
std::shared_ptr<T> taken(T* from) {
  auto* own = new T(*from);
  from->release = nullptr;
  return {own, [](T* mine) {
            if (mine->release) mine->release(mine);
            delete mine;
          }};
}

template <class T>
T* pointer_of(nb::handle capsule, const char* name) {
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!pointer) throw nb::python_error();
  auto* structure = static_cast<T*>(pointer);
  if (!structure->release)
    raise("InvalidArgument", "the Arrow data were read before, and are gone",
          "make the reader or the stream anew");
  return structure;
}

[[noreturn]] void raise_malformed(const std::string& what) {
  raise("InvalidArgument", "the Arrow data are malformed: " + what,
        "report it to who has made them");
}

void check_schema(const ArrowSchema& schema) {
  if (!schema.release || !schema.format) raise_malformed("there is no schema");
  bool good = schema.n_children >= 0 && (schema.n_children == 0 || schema.children);
  for (int64_t i = 0; good && i < schema.n_children; ++i) good = schema.children[i] != nullptr;
  if (!good) raise_malformed("a column of the schema is missing");
}

// Rows of a frame, which are there as a whole: it is cells that may be null.
void check_frame(const ArrowSchema& schema, const ArrowArray& array) {
  if (array.n_children != schema.n_children || (array.n_children && !array.children))
    raise_malformed("a batch has " + std::to_string(array.n_children) +
                    " columns, and its schema " + std::to_string(schema.n_children));
  for (int64_t i = 0; i < array.n_children; ++i)
    if (!array.children[i]) raise_malformed("a column of a batch is missing");
  if (array.length < 0 || array.offset < 0) raise_malformed("a batch has a negative length");
  const auto* bits = array.n_buffers > 0 && array.buffers && array.null_count != 0
                         ? static_cast<const uint8_t*>(array.buffers[0])
                         : nullptr;
  for (int64_t row = 0; bits && row < array.length; ++row) {
    const int64_t at = array.offset + row;
    if (!(bits[at / 8] >> (at % 8) & 1))
      raise("InvalidArgument", "row " + std::to_string(row) + " is null as a whole",
            "leave it out, or make its cells null");
  }
}

}  // namespace

// Polars' type Object: as Arrow data its cells would be the addresses of Python's objects.
bool has_polars_objects(nb::handle given) {
  if (!nb::cast<std::string>(nb::str(given.type().attr("__module__"))).starts_with("polars"))
    return false;
  nb::list types;
  if (nb::hasattr(given, "dtype"))
    types.append(given.attr("dtype"));
  else if (nb::hasattr(given, "dtypes"))
    types = nb::list(given.attr("dtypes"));
  return std::ranges::any_of(types, [](nb::handle type) {
    return nb::cast<std::string>(nb::str(type)) == "Object";
  });
}

bool is_arrow(nb::handle given) {
  return nb::hasattr(given, "__arrow_c_array__") ||
         (nb::hasattr(given, "__arrow_c_stream__") && !has_polars_objects(given));
}

ArrowStream::ArrowStream(nb::handle given) {
  if (nb::hasattr(given, "__arrow_c_array__")) {
    const nb::object pair = given.attr("__arrow_c_array__")();
    if (!nb::isinstance<nb::tuple>(pair) || nb::len(pair) != 2)
      raise("InvalidType", "__arrow_c_array__() has returned no pair of a schema and an array");
    schema_ = taken(pointer_of<ArrowSchema>(nb::object(pair[0]), "arrow_schema"));
    array_ = taken(pointer_of<ArrowArray>(nb::object(pair[1]), "arrow_array"));
    check_schema(*schema_);
    return;
  }
  const nb::object capsule = given.attr("__arrow_c_stream__")();
  stream_ = taken(pointer_of<ArrowArrayStream>(capsule, "arrow_array_stream"));
  ArrowSchema schema{};
  if (stream_->get_schema(stream_.get(), &schema) != 0) {
    if (PyErr_Occurred()) throw nb::python_error();
    const char* why = stream_->get_last_error(stream_.get());
    raise("InvalidArgument",
          std::string("the Arrow stream has no schema: ") + (why ? why : "no reason is given"));
  }
  schema_ = taken(&schema);
  check_schema(*schema_);
}

bool ArrowStream::is_frame() const { return std::strcmp(schema_->format, "+s") == 0; }

std::vector<std::string> ArrowStream::names() const {
  std::vector<std::string> names;
  for (int64_t i = 0; i < schema_->n_children; ++i) {
    const char* name = schema_->children[i]->name;
    names.emplace_back(name ? name : "");
  }
  return names;
}

bool ArrowStream::next(std::vector<Cells>* columns) {
  columns->clear();
  std::shared_ptr<ArrowArray> array = std::exchange(array_, nullptr);
  if (!array) {
    if (!stream_) return false;
    ArrowArray next{};
    int failed;
    {
      const Unlocked unlocked;
      failed = stream_->get_next(stream_.get(), &next);
    }
    if (failed) {
      if (PyErr_Occurred()) throw nb::python_error();
      const char* why = stream_->get_last_error(stream_.get());
      raise("InvalidArgument", std::string("the Arrow stream has ended with an error: ") +
                                   (why ? why : "no reason is given"));
    }
    if (!next.release) return false;
    array = taken(&next);
  }
  if (is_frame()) check_frame(*schema_, *array);
  if (!is_frame()) {
    columns->push_back(import_arrow(*schema_, *array, array, 0, array->length, name_));
    return true;
  }
  for (int64_t i = 0; i < schema_->n_children; ++i) {
    const char* name = schema_->children[i]->name;
    columns->push_back(import_arrow(*schema_->children[i], *array->children[i], array,
                                    array->offset, array->length, name ? name : ""));
  }
  return true;
}

Cells cells_of_arrow(nb::handle given, const std::string& name) {
  ArrowStream stream(given);
  stream.set_name(name);
  if (stream.is_frame() && stream.names().size() != 1)
    raise("InvalidType",
          "column " + in_quotes(name) + ": a frame of " + std::to_string(stream.names().size()) +
              " columns is given in place of a column",
          "give one of its columns");
  std::vector<Cells> chunks, columns;
  while (stream.next(&columns)) {
    check_signals();
    if (columns[0].size() || chunks.empty()) chunks.push_back(std::move(columns[0]));
  }
  if (chunks.size() > 1 && chunks[0].size() == 0) chunks.erase(chunks.begin());
  return joined(std::move(chunks), name);
}

}  // namespace stride::python
