// Columns of Arrow's C++ library as the bytes, texts and numbers that rows are made of.
#pragma once

#include <arrow/api.h>
#include <arrow/util/bit_util.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/cli/text/key_codec.h"
#include "storage/row_format.h"
#include "storage/schema.h"

namespace stride::cli {

using ArrayPointer = std::shared_ptr<arrow::Array>;

// The type of a column's values once dictionaries and extensions are taken away.
const arrow::DataType& plain_type(const arrow::DataType& type);
// Whether ArrowTextColumn takes values of a plain type.
bool has_text(const arrow::DataType& type);
// The column without dictionaries and extensions.
arrow::Result<ArrayPointer> plain(ArrayPointer array);
// 16 bytes as the texts of UUIDs; other columns as they are.
arrow::Result<ArrayPointer> uuid_texts(ArrayPointer array);
// Checks a column as it comes from a file, whose offsets may point anywhere. Strings become bytes:
// whether they are UTF-8 nobody asks.
arrow::Result<ArrayPointer> checked(const ArrayPointer& array);

class NullRows {
 public:
  NullRows() = default;
  explicit NullRows(const arrow::Array& array)
      : bits_(array.null_count() ? array.null_bitmap_data() : nullptr), offset_(array.offset()) {}
  bool operator[](int64_t row) const {
    return bits_ && !arrow::bit_util::GetBit(bits_, offset_ + row);
  }

 private:
  const uint8_t* bits_ = nullptr;
  int64_t offset_ = 0;
};

// A column's bytes, or its text where it is of numbers, dates and so on.
class ArrowTextColumn {
 public:
  static arrow::Result<ArrowTextColumn> make(ArrayPointer array);

  bool is_null(int64_t row) const { return nulls_[row]; }
  // Returns nothing for a null.
  std::string_view operator[](int64_t row) const {
    if (nulls_[row]) return {};
    if (!offsets_) return {data_ + row * width_, static_cast<size_t>(width_)};
    return {data_ + offsets_[row], static_cast<size_t>(offsets_[row + 1] - offsets_[row])};
  }
  uint64_t bytes() const { return bytes_; }

 private:
  ArrayPointer array_;
  NullRows nulls_;
  const char* data_ = nullptr;
  const int64_t* offsets_ = nullptr;
  int64_t width_ = 0;  // without offsets
  uint64_t bytes_ = 0;
};

// Integers of any width, as 64 bits.
class ArrowNumberColumn {
 public:
  // Precondition: the array has integers.
  static arrow::Result<ArrowNumberColumn> make(const ArrayPointer& array);
  bool is_null(int64_t row) const { return nulls_[row]; }
  uint64_t operator[](int64_t row) const { return numbers_[row]; }
  // The upper half of u64 is negative in i64, and the other way round.
  bool fits(int64_t row, KeyType type) const {
    return signed_ == (type == KeyType::i64) || static_cast<int64_t>(numbers_[row]) >= 0;
  }
  std::string text(int64_t row) const {
    return signed_ ? std::to_string(static_cast<int64_t>(numbers_[row]))
                   : std::to_string(numbers_[row]);
  }

 private:
  ArrayPointer array_;
  NullRows nulls_;
  const uint64_t* numbers_ = nullptr;
  bool signed_ = false;
};

// The field of a schema that has the values of a column: its own type where there is one, else a
// string.
Field field_of(const arrow::Field& field);

// A column as cells of a field: copied where the types are the same, else by way of the text.
class ArrowCells {
 public:
  static arrow::Result<ArrowCells> make(ArrayPointer array, const Field& field);

  // Counts the bytes of strings.
  uint64_t bytes() const { return text_.bytes(); }
  bool is_null(int64_t row) const { return nulls_[row]; }
  // False: it is no cell of the field. Precondition: it is not null.
  bool set(int64_t row, size_t column, RowWriter* to) const;
  // For messages.
  std::string text(int64_t row) const;

 private:
  Field field_;
  ArrayPointer array_;
  NullRows nulls_;
  const uint8_t* numbers_ = nullptr;  // as the field has them
  const uint8_t* bits_ = nullptr;     // of booleans
  int64_t offset_ = 0;                // of these
  NullRows null_elements_;            // of vectors, counted from first_element_ on
  int64_t first_element_ = 0;
  uint32_t width_ = 0;
  ArrowTextColumn text_;  // where there is neither
};

}  // namespace stride::cli
