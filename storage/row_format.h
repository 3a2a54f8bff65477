// Rows of a schema: the cells of its value columns in one byte string.
//
//   RowWriter row(schema);                    // name string, score f64?, age i32
//   row.set(0, "Ada");
//   row.set(1, 1.5);                          // what is not set is null, 0 or empty
//   transaction.put(users, key, row.bytes());
//
//   RowReader cells(schema);
//   if (!cells.read(value)) ...               // no row of this schema
//   std::optional<double> score = cells.number<double>(1);
//
//   +--------------------------+---------------+------------------------+------------------+
//   | cells that have a width, | a bit for each| lengths of the others  | their bytes, one |
//   | in the schema's order    | nullable one  | but the last, LEB128   | behind the other |
//   +--------------------------+---------------+------------------------+------------------+
//     score: 8  age: 4           1: it is there                           "Ada"
//
// Numbers are little-endian and not aligned; a cell that is null has bytes of 0, or none. Bits are
// taken from the least significant one on; those that are left in the last byte are 0. So all rows
// of columns that have a width are as long, and cells of a column lie at one distance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "storage/column.h"
#include "storage/export.h"
#include "storage/schema.h"

namespace stride {

// Reads one row after the other. The schema must outlive it.
class STRIDE_API RowReader {
 public:
  explicit RowReader(const Schema& schema) : schema_(&schema) {
    if (schema.is_fixed()) return;
    ends_.resize(schema.values().size());
    begins_.resize(schema.values().size());
  }

  // False: the bytes are no row of the schema. Costs as much as it has columns of any length.
  bool read(Bytes row);
  // What follows is of the row that was read last.
  bool is_null(size_t column) const {
    const uint32_t bit = schema_->valid_bit(column);
    return bit != Schema::no_bit && !(std::to_integer<unsigned>(row_[bit / 8]) >> (bit % 8) & 1);
  }
  // The cell's bytes; of a null they are 0, or none.
  Bytes operator[](size_t column) const {
    if (const uint32_t width = schema_->width(column))
      return {row_.data() + schema_->offset(column), width};
    return {row_.data() + begins_[column], ends_[column] - begins_[column]};
  }
  // Nothing for a null. Precondition: T is as wide as the column's cells.
  template <class T>
  std::optional<T> number(size_t column) const {
    static_assert(std::is_arithmetic_v<T>);
    if (is_null(column)) return std::nullopt;
    T number;
    std::memcpy(&number, row_.data() + schema_->offset(column), sizeof number);
    return number;
  }
  std::optional<std::string_view> text(size_t column) const {
    if (is_null(column)) return std::nullopt;
    return as_text((*this)[column]);
  }

 private:
  const Schema* schema_;
  Bytes row_;
  std::vector<uint64_t> ends_, begins_;  // of columns of any length
};

// Makes one row after the other. The schema must outlive it, and strings what is done with the row.
class STRIDE_API RowWriter {
 public:
  explicit RowWriter(const Schema& schema)
      : schema_(&schema), fixed_(schema.fixed_bytes()), views_(schema.values().size()) {}

  // All cells are null, 0 or empty again.
  void clear();
  // Where the cell's bytes go, and marks it as there. Precondition: its cells have a width.
  std::byte* cell(size_t column) {
    mark(column);
    return fixed_.data() + schema_->offset(column);
  }
  // Precondition: the cell is as long as the column's, where those have a width. Of any length it
  // is kept as a view.
  void set(size_t column, Bytes cell_bytes) {
    if (schema_->width(column) == 0) {
      mark(column);
      views_[column] = cell_bytes;
    } else {
      std::memcpy(cell(column), cell_bytes.data(), cell_bytes.size());
    }
  }
  void set(size_t column, std::string_view text) { set(column, as_bytes(text)); }
  void set(size_t column, const char* text) { set(column, std::string_view(text)); }
  // The number as the column has it: set(2, 17) of a column of f64 is 17.0. One that does not fit
  // is cut as a conversion does.
  template <class T>
  requires std::is_arithmetic_v<T>
  void set(size_t column, T number);
  void set_null(size_t column);

  uint64_t size() const;
  // Writes size() bytes, and returns where they end.
  std::byte* write(std::byte* to) const;
  // Until the next call.
  Bytes bytes();

 private:
  void mark(size_t column) {
    const uint32_t bit = schema_->valid_bit(column);
    if (bit != Schema::no_bit) fixed_[bit / 8] |= std::byte{1} << (bit % 8);
  }

  const Schema* schema_;
  std::vector<std::byte> fixed_;
  std::vector<Bytes> views_;
  std::vector<std::byte> row_;
};

// Calls use(T()) with the type of a column's numbers: of a vector that of its elements, of dates
// and times the integer that they are. Nothing for strings, bytes and uuid.
template <class Use>
void with_number_of(FieldType type, const Use& use) {
  switch (type) {
    case FieldType::boolean:
    case FieldType::u8:
      return use(uint8_t{});
    case FieldType::i8:
      return use(int8_t{});
    case FieldType::i16:
      return use(int16_t{});
    case FieldType::i32:
    case FieldType::date:
      return use(int32_t{});
    case FieldType::i64:
    case FieldType::timestamp_s:
    case FieldType::timestamp_ms:
    case FieldType::timestamp_us:
    case FieldType::timestamp_ns:
      return use(int64_t{});
    case FieldType::u16:
      return use(uint16_t{});
    case FieldType::u32:
      return use(uint32_t{});
    case FieldType::u64:
      return use(uint64_t{});
    case FieldType::f32:
      return use(float{});
    case FieldType::f64:
      return use(double{});
    case FieldType::uuid:
    case FieldType::string:
    case FieldType::bytes:
      return;
  }
}

template <class T>
requires std::is_arithmetic_v<T>
void RowWriter::set(size_t column, T number) {
  with_number_of(schema_->values()[column].type, [&](auto as) {
    as = static_cast<decltype(as)>(number);
    std::memcpy(cell(column), &as, sizeof as);
  });
}

// LEB128, of lengths.
inline constexpr size_t max_length_bytes = 5;
inline size_t length_bytes(uint64_t length) {
  size_t n = 1;
  for (; length >= 0x80; length >>= 7) ++n;
  return n;
}
inline std::byte* write_length(uint64_t length, std::byte* to) {
  for (; length >= 0x80; length >>= 7) *to++ = static_cast<std::byte>(length | 0x80);
  *to++ = static_cast<std::byte>(length);
  return to;
}
// Null: there is no length, or one that values cannot have.
inline const std::byte* read_length(const std::byte* from, const std::byte* end, uint64_t* length) {
  *length = 0;
  for (unsigned shift = 0; shift < 7 * max_length_bytes; shift += 7) {
    if (from == end) return nullptr;
    const auto byte = std::to_integer<uint64_t>(*from++);
    *length |= (byte & 0x7F) << shift;
    if (byte < 0x80) return from;
  }
  return nullptr;
}

}  // namespace stride
