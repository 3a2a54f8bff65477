// Cells as Arrow arrays: where they lie, as far as the layouts agree.
#include <algorithm>
#include <cstring>
#include <utility>

#include "adapters/python/arrow_abi.h"
#include "adapters/python/errors.h"
#include "adapters/python/rows.h"
#include "storage/quoted.h"
#include "storage/utf8.h"

namespace stride::python {
namespace {

const char* element_format(FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return "b";
    case FieldType::i8:
      return "c";
    case FieldType::i16:
      return "s";
    case FieldType::i32:
      return "i";
    case FieldType::i64:
      return "l";
    case FieldType::u8:
      return "C";
    case FieldType::u16:
      return "S";
    case FieldType::u32:
      return "I";
    case FieldType::u64:
      return "L";
    case FieldType::f32:
      return "f";
    case FieldType::f64:
      return "g";
    case FieldType::date:
      return "tdD";
    case FieldType::timestamp_s:
      return "tss:";
    case FieldType::timestamp_ms:
      return "tsm:";
    case FieldType::timestamp_us:
      return "tsu:";
    case FieldType::timestamp_ns:
      return "tsn:";
    case FieldType::uuid:
      return "w:16";
    case FieldType::string:
      return "U";
    case FieldType::bytes:
      return "Z";
  }
  return "n";
}

std::string format_of(const Field& field) {
  if (field.type == FieldType::bytes && field.count) return "w:" + std::to_string(field.count);
  if (field.is_vector()) return "+w:" + std::to_string(field.count);
  return element_format(field.type);
}

// Structures of Arrow's are released with what owns them, also where that is never finished.
struct Release {
  template <class Structure>
  void operator()(Structure* structure) const {
    if (structure->release) structure->release(structure);
    delete structure;
  }
};
template <class Structure>
using Owned = std::unique_ptr<Structure, Release>;
template <class Structure>
Owned<Structure> make_owned() {
  return Owned<Structure>(new Structure{});
}

// What a schema, an array or a stream owns. Those of children are released with their parent.
struct SchemaParts {
  std::string format, name;
  std::vector<Owned<ArrowSchema>> children;
  std::vector<ArrowSchema*> pointers;
};
struct ArrayParts {
  Cells cells;  // keeps the memory
  std::vector<const void*> buffers;
  std::vector<Owned<ArrowArray>> children;
  std::vector<ArrowArray*> pointers;
};

template <class Structure, class Parts>
void release(Structure* structure) {
  delete static_cast<Parts*>(structure->private_data);
  structure->release = nullptr;
}

void make_schema(const std::string& format, const std::string& name, bool nullable,
                 std::vector<Owned<ArrowSchema>> children, ArrowSchema* schema) {
  auto parts = std::make_unique<SchemaParts>();
  parts->format = format;
  parts->name = name;
  parts->children = std::move(children);
  for (auto& child : parts->children) parts->pointers.push_back(child.get());
  *schema = {};
  schema->format = parts->format.c_str();
  schema->name = parts->name.c_str();
  schema->flags = nullable ? arrow_nullable : 0;
  schema->n_children = static_cast<int64_t>(parts->children.size());
  schema->children = parts->pointers.data();
  schema->release = release<ArrowSchema, SchemaParts>;
  schema->private_data = parts.release();
}

void schema_of(const Cells& cells, ArrowSchema* schema) {
  std::vector<Owned<ArrowSchema>> children;
  if (cells.field.is_vector()) {
    children.push_back(make_owned<ArrowSchema>());
    make_schema(element_format(cells.field.type), "item", true, {}, children.back().get());
  }
  make_schema(format_of(cells.field), cells.field.name, cells.field.nullable || cells.column.valid,
              std::move(children), schema);
}

void make_array(std::unique_ptr<ArrayParts> parts, uint64_t rows, ArrowArray* array) {
  for (auto& child : parts->children) parts->pointers.push_back(child.get());
  *array = {};
  array->length = static_cast<int64_t>(rows);
  array->null_count = parts->buffers[0] ? -1 : 0;
  array->n_buffers = static_cast<int64_t>(parts->buffers.size());
  array->buffers = parts->buffers.data();
  array->n_children = static_cast<int64_t>(parts->children.size());
  array->children = parts->pointers.data();
  array->release = release<ArrowArray, ArrayParts>;
  array->private_data = parts.release();
}

// The cells one behind the other.
const std::byte* packed(Cells* cells) {
  const CellColumn column = cells->column;
  if (column.stride == column.width) return column.data;
  auto* data = add_memory<std::byte>(cells, std::max<uint64_t>(column.size * column.width, 1));
  for (uint64_t row = 0; row < column.size; ++row)
    std::memcpy(data + row * column.width, column.data + row * column.stride, column.width);
  return data;
}

const void* bits_of_booleans(Cells* cells, const std::byte* bytes, uint64_t n) {
  uint64_t* bits = add_bits(cells, n);
  for (uint64_t i = 0; i < n; ++i) bits[i / 64] |= uint64_t{bytes[i] != std::byte{0}} << (i % 64);
  return bits;
}

void check_text(const Cells& cells) {
  if (cells.field.type != FieldType::string) return;
  for (uint64_t row = 0; row < cells.size(); ++row)
    if (!is_utf8(as_text(cells.column[row])))
      raise("Corruption", column_name(cells.field) + ", row " + std::to_string(row) +
                              ": the string is no UTF-8, which Arrow asks for");
}

void array_of(const Cells& cells, ArrowArray* array) {
  auto parts = std::make_unique<ArrayParts>();
  parts->cells = cells;
  Cells* own = &parts->cells;
  const CellColumn& column = own->column;
  parts->buffers.push_back(column.valid);
  if (column.offsets) {
    check_text(cells);
    parts->buffers.push_back(column.offsets);
    parts->buffers.push_back(column.data);
  } else {
    const std::byte* data = packed(own);
    const bool of_bits = own->field.type == FieldType::boolean;
    const uint64_t elements = column.size * std::max(own->field.count, 1u);
    const void* buffer = of_bits ? bits_of_booleans(own, data, elements) : data;
    if (!own->field.is_vector()) {
      parts->buffers.push_back(buffer);
    } else {
      auto child = std::make_unique<ArrayParts>();
      child->buffers = {nullptr, buffer};
      parts->children.push_back(make_owned<ArrowArray>());
      make_array(std::move(child), elements, parts->children.back().get());
    }
  }
  make_array(std::move(parts), column.size, array);
}

void frame_schema(const std::vector<const Cells*>& columns, ArrowSchema* schema) {
  std::vector<Owned<ArrowSchema>> children;
  for (const Cells* cells : columns) {
    children.push_back(make_owned<ArrowSchema>());
    schema_of(*cells, children.back().get());
  }
  make_schema("+s", "", false, std::move(children), schema);
}

void frame_array(const std::vector<const Cells*>& columns, uint64_t rows, ArrowArray* array) {
  auto parts = std::make_unique<ArrayParts>();
  parts->buffers.push_back(nullptr);
  for (const Cells* cells : columns) {
    parts->children.push_back(make_owned<ArrowArray>());
    array_of(*cells, parts->children.back().get());
  }
  make_array(std::move(parts), rows, array);
}

template <class Structure>
nb::object capsule_of(Owned<Structure> structure, const char* name) {
  PyObject* capsule = PyCapsule_New(structure.get(), name, [](PyObject* self) {
    auto* own = static_cast<Structure*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    Release()(own);
  });
  if (!capsule) throw nb::python_error();
  structure.release();
  return nb::steal(capsule);
}

// One batch.
struct StreamParts {
  ArrowArray array{};
  std::vector<Cells> columns;  // for further schemas
};

int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  auto* parts = static_cast<StreamParts*>(stream->private_data);
  try {
    std::vector<const Cells*> columns;
    for (const Cells& cells : parts->columns) columns.push_back(&cells);
    frame_schema(columns, out);
  } catch (const std::bad_alloc&) {
    return 12;  // ENOMEM
  }
  return 0;
}

int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto* parts = static_cast<StreamParts*>(stream->private_data);
  *out = std::exchange(parts->array, {});
  return 0;
}

const char* stream_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  auto* parts = static_cast<StreamParts*>(stream->private_data);
  if (parts->array.release) parts->array.release(&parts->array);
  delete parts;
  stream->release = nullptr;
}

}  // namespace

nb::object export_arrow_schema(const std::vector<const Cells*>& columns, bool frame) {
  auto schema = make_owned<ArrowSchema>();
  if (frame)
    frame_schema(columns, schema.get());
  else
    schema_of(*columns[0], schema.get());
  return capsule_of(std::move(schema), "arrow_schema");
}

nb::object export_arrow_array(const std::vector<const Cells*>& columns, bool frame, uint64_t rows) {
  auto array = make_owned<ArrowArray>();
  if (frame)
    frame_array(columns, rows, array.get());
  else
    array_of(*columns[0], array.get());
  return capsule_of(std::move(array), "arrow_array");
}

nb::object export_arrow_stream(const std::vector<const Cells*>& columns, uint64_t rows) {
  auto parts = std::make_unique<StreamParts>();
  for (const Cells* cells : columns) parts->columns.push_back(*cells);
  frame_array(columns, rows, &parts->array);
  auto stream = make_owned<ArrowArrayStream>();
  *stream = {stream_schema, stream_next, stream_error, release_stream, parts.release()};
  return capsule_of(std::move(stream), "arrow_array_stream");
}

}  // namespace stride::python
