#include "adapters/cli/input/arrow_columns.h"

#include <arrow/compute/cast.h>

#include <utility>

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

}  // namespace stride::cli
