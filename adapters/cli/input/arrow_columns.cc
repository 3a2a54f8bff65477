#include "adapters/cli/input/arrow_columns.h"

#include <arrow/builder.h>
#include <arrow/compute/cast.h>

#include <cstring>
#include <optional>
#include <utility>

#include "adapters/cli/text/cell_text.h"

namespace stride::cli {

using arrow::Result;
using arrow::Type;

namespace {

Result<ArrayPointer> without_encoding(const ArrayPointer& array) {
  switch (array->type_id()) {
    case Type::STRING:
      return array->View(arrow::binary());
    case Type::LARGE_STRING:
      return array->View(arrow::large_binary());
    case Type::STRING_VIEW:
      return array->View(arrow::binary_view());
    default:
      return array;
  }
}

}  // namespace

const arrow::DataType& plain_type(const arrow::DataType& type) {
  if (type.id() == Type::DICTIONARY)
    return plain_type(*static_cast<const arrow::DictionaryType&>(type).value_type());
  if (type.id() == Type::EXTENSION)
    return plain_type(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  return type;
}

bool has_text(const arrow::DataType& type) {
  return type.id() == Type::FIXED_SIZE_BINARY || arrow::is_base_binary_like(type.id()) ||
         arrow::is_binary_view_like(type.id()) ||
         arrow::compute::CanCast(type, *arrow::large_utf8());
}

Result<ArrayPointer> plain(ArrayPointer array) {
  for (;;) {
    if (array->type_id() == Type::EXTENSION) {
      array = static_cast<const arrow::ExtensionArray&>(*array).storage();
    } else if (array->type_id() == Type::DICTIONARY) {
      const auto& type = static_cast<const arrow::DictionaryType&>(*array->type());
      ARROW_ASSIGN_OR_RAISE(array, arrow::compute::Cast(*array, type.value_type()));
    } else {
      return array;
    }
  }
}

Result<ArrayPointer> checked(const ArrayPointer& array) {
  ARROW_RETURN_NOT_OK(array->Validate());
  ARROW_ASSIGN_OR_RAISE(ArrayPointer bytes, without_encoding(array));
  ARROW_RETURN_NOT_OK(bytes->ValidateFull());
  return bytes;
}

Result<ArrayPointer> uuid_texts(ArrayPointer array) {
  ARROW_ASSIGN_OR_RAISE(array, plain(std::move(array)));
  if (array->type_id() != Type::FIXED_SIZE_BINARY) return array;
  const auto& uuids = static_cast<const arrow::FixedSizeBinaryArray&>(*array);
  if (uuids.byte_width() != 16) return array;
  const Field field{"", FieldType::uuid, 0, false};
  arrow::LargeStringBuilder texts;
  TextBuffer text;
  for (int64_t row = 0; row < uuids.length(); ++row) {
    if (uuids.IsNull(row)) {
      ARROW_RETURN_NOT_OK(texts.AppendNull());
      continue;
    }
    text.clear();
    append_cell(field, as_bytes(uuids.GetView(row)), &text);
    ARROW_RETURN_NOT_OK(texts.Append(text.text()));
  }
  return texts.Finish();
}

Result<ArrowTextColumn> ArrowTextColumn::make(ArrayPointer array) {
  ARROW_ASSIGN_OR_RAISE(array, plain(std::move(array)));
  ARROW_ASSIGN_OR_RAISE(array, without_encoding(array));
  ArrowTextColumn column;
  if (array->type_id() == Type::FIXED_SIZE_BINARY) {
    const auto& fixed = static_cast<const arrow::FixedSizeBinaryArray&>(*array);
    column.data_ = reinterpret_cast<const char*>(fixed.raw_values());
    column.width_ = fixed.byte_width();
    column.bytes_ = static_cast<uint64_t>(array->length()) * static_cast<uint64_t>(column.width_);
  } else {
    if (arrow::is_base_binary_like(array->type_id()) ||
        arrow::is_binary_view_like(array->type_id())) {
      ARROW_ASSIGN_OR_RAISE(array, arrow::compute::Cast(*array, arrow::large_binary()));
    } else {
      ARROW_ASSIGN_OR_RAISE(array, arrow::compute::Cast(*array, arrow::large_utf8()));
    }
    const auto& strings = static_cast<const arrow::LargeBinaryArray&>(*array);
    column.data_ = reinterpret_cast<const char*>(strings.raw_data());
    column.offsets_ = strings.raw_value_offsets();
    column.bytes_ = static_cast<uint64_t>(strings.total_values_length());
  }
  column.nulls_ = NullRows(*array);
  column.array_ = std::move(array);
  return column;
}

Result<ArrowNumberColumn> ArrowNumberColumn::make(const ArrayPointer& array) {
  ArrowNumberColumn column;
  column.signed_ = arrow::is_signed_integer(array->type_id());
  ARROW_ASSIGN_OR_RAISE(
      column.array_,
      arrow::compute::Cast(*array, column.signed_ ? arrow::int64() : arrow::uint64()));
  column.nulls_ = NullRows(*column.array_);
  column.numbers_ = column.array_->data()->GetValues<uint64_t>(1);
  return column;
}

namespace {

// The type of a schema that is laid out as Arrow's; nothing where there is none.
std::optional<FieldType> same_type(const arrow::DataType& type) {
  switch (type.id()) {
    case Type::BOOL:
      return FieldType::boolean;
    case Type::INT8:
      return FieldType::i8;
    case Type::INT16:
      return FieldType::i16;
    case Type::INT32:
      return FieldType::i32;
    case Type::INT64:
      return FieldType::i64;
    case Type::UINT8:
      return FieldType::u8;
    case Type::UINT16:
      return FieldType::u16;
    case Type::UINT32:
      return FieldType::u32;
    case Type::UINT64:
      return FieldType::u64;
    case Type::FLOAT:
      return FieldType::f32;
    case Type::DOUBLE:
      return FieldType::f64;
    case Type::DATE32:
      return FieldType::date;
    case Type::TIMESTAMP:
      switch (static_cast<const arrow::TimestampType&>(type).unit()) {
        case arrow::TimeUnit::SECOND:
          return FieldType::timestamp_s;
        case arrow::TimeUnit::MILLI:
          return FieldType::timestamp_ms;
        case arrow::TimeUnit::MICRO:
          return FieldType::timestamp_us;
        case arrow::TimeUnit::NANO:
          return FieldType::timestamp_ns;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_bytes(const arrow::DataType& type) {
  return type.id() == Type::BINARY || type.id() == Type::LARGE_BINARY ||
         type.id() == Type::BINARY_VIEW || type.id() == Type::FIXED_SIZE_BINARY;
}

// The numbers of a vector; null where it is none, or of something else.
const arrow::DataType* elements_of(const arrow::DataType& type) {
  if (type.id() != Type::FIXED_SIZE_LIST) return nullptr;
  const arrow::DataType& elements =
      *static_cast<const arrow::FixedSizeListType&>(type).value_type();
  const auto same = same_type(elements);
  return same && *same != FieldType::boolean ? &elements : nullptr;
}

}  // namespace

Field field_of(const arrow::Field& from) {
  Field field{from.name(), FieldType::string, 0, from.nullable()};
  const arrow::DataType& type = plain_type(*from.type());
  const bool is_uuid =
      from.type()->id() == Type::EXTENSION &&
      static_cast<const arrow::ExtensionType&>(*from.type()).extension_name() == "arrow.uuid";
  if (is_uuid) {
    field.type = FieldType::uuid;
    return field;
  }
  if (const auto same = same_type(type)) {
    field.type = *same;
  } else if (is_bytes(type)) {
    field.type = FieldType::bytes;
    if (type.id() == Type::FIXED_SIZE_BINARY)
      field.count =
          static_cast<uint32_t>(static_cast<const arrow::FixedSizeBinaryType&>(type).byte_width());
  } else if (const arrow::DataType* elements = elements_of(type)) {
    field.type = *same_type(*elements);
    field.count =
        static_cast<uint32_t>(static_cast<const arrow::FixedSizeListType&>(type).list_size());
  }
  return field;
}

Result<ArrowCells> ArrowCells::make(ArrayPointer array, const Field& field) {
  ArrowCells cells;
  cells.field_ = field;
  cells.width_ = cell_width(field);
  ARROW_ASSIGN_OR_RAISE(array, plain(std::move(array)));
  const auto same = same_type(*array->type());
  const arrow::DataType* elements = elements_of(*array->type());
  const bool sixteen_bytes =
      array->type_id() == Type::FIXED_SIZE_BINARY &&
      static_cast<const arrow::FixedSizeBinaryType&>(*array->type()).byte_width() == 16;
  if (field.type == FieldType::uuid && sixteen_bytes) {
    cells.numbers_ = static_cast<const arrow::FixedSizeBinaryArray&>(*array).raw_values();
  } else if (same && *same == field.type && field.count == 0) {
    const arrow::ArrayData& data = *array->data();
    if (*same == FieldType::boolean) {
      cells.bits_ = data.GetValues<uint8_t>(1, 0);
      cells.offset_ = data.offset;
    } else {
      cells.numbers_ = data.GetValues<uint8_t>(1, 0) + data.offset * cells.width_;
    }
  } else if (elements && field.is_vector() && *same_type(*elements) == field.type) {
    const auto& list = static_cast<const arrow::FixedSizeListArray&>(*array);
    if (list.list_type()->list_size() != static_cast<int32_t>(field.count))
      return arrow::Status::Invalid("vectors of ", list.list_type()->list_size(),
                                    " elements, and the table has ", field.count);
    const arrow::ArrayData& data = *list.values()->data();
    // Those of a vector that is null may be null, too.
    cells.null_elements_ = NullRows(*list.values());
    cells.first_element_ = list.value_offset(0);
    cells.numbers_ = data.GetValues<uint8_t>(1, 0) + data.offset * width_of(field.type) +
                     list.offset() * cells.width_;
  } else {
    ARROW_ASSIGN_OR_RAISE(cells.text_, ArrowTextColumn::make(array));
  }
  cells.nulls_ = NullRows(*array);
  cells.array_ = std::move(array);
  return cells;
}

bool ArrowCells::set(int64_t row, size_t column, RowWriter* to) const {
  if (numbers_) {
    for (uint32_t i = 0; i < field_.count; ++i)
      if (null_elements_[first_element_ + row * field_.count + i]) return false;
    std::memcpy(to->cell(column), numbers_ + row * width_, width_);
    return true;
  }
  if (bits_) {
    *to->cell(column) = std::byte{arrow::bit_util::GetBit(bits_, offset_ + row)};
    return true;
  }
  return parse_cell(field_, text_[row], column, to);
}

std::string ArrowCells::text(int64_t row) const {
  if (nulls_[row]) return "";
  if (!numbers_ && !bits_) return std::string(text_[row]);
  TextBuffer text;
  if (bits_) return arrow::bit_util::GetBit(bits_, offset_ + row) ? "true" : "false";
  append_cell(field_, {reinterpret_cast<const std::byte*>(numbers_) + row * width_, width_}, &text);
  return std::string(text.text());
}

}  // namespace stride::cli
