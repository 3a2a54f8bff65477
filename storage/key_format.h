// Keys of columns as bytes that sort as the columns do: by the first one, where those are equal by the
// second, and so on.
//
//   KeyWriter key(schema);                      // "country string key, year i16 key, ..."
//   key.set(0, "nz");
//   key.set(1, 1999);
//   transaction.put(table, key.bytes(), value);
//
//   using CityKey = Key<std::string_view, int16_t>;     // the same where types are known beforehand
//   transaction.put(table, CityKey::encode("nz", 1999), value);
//   std::optional<std::tuple<std::string, int16_t>> parts = CityKey::decode(batch.keys[0]);
//
//   column                      bytes                                               order
//   bool, u8 to u64             highest first                                       of numbers
//   i8 to i64, date, timestamp  highest first, the sign bit flipped                 of numbers
//   f32, f64                    highest first; the sign bit flipped, of negative    total (IEEE 754): -NaN,
//                               ones all bits                                       -inf, ..., -0, 0, ..., NaN
//   uuid, bytes[N]              as they are                                         of bytes
//   string, bytes, the last     as they are                                         of bytes
//   string, bytes before it     each 0x00 as 0x00 0xFF, and 0x00 0x00 behind        of bytes
//
// A key of one u64 or i64 is that of storage/integer_key.h, and a beginning of columns is a
// beginning of keys: KeyWriter::beginning() of ("nz") is a prefix for scans. The way of writing strings
// is that of FoundationDB's tuple layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage/column.h"
#include "storage/export.h"
#include "storage/row_format.h"
#include "storage/schema.h"

namespace stride {

// Appends a cell, whose bytes are those of rows (storage/row_format.h). last: of the key's last column.
// Precondition: the cell is as long as the field's, where those have a width.
STRIDE_API void append_key_cell(const Field& field, Bytes cell, bool last, std::string* key);
// Reads the cell at the beginning of *key, and drops it from there. *memory is where the cell may lie
// afterwards. False: the bytes are no such cell.
STRIDE_API bool take_key_cell(const Field& field, bool last, Bytes* key, std::string* memory,
                              Bytes* cell);

// Makes one key after the other. The schema must outlive it.
class STRIDE_API KeyWriter {
 public:
  explicit KeyWriter(const Schema& schema) : schema_(&schema), cells_(schema.key().size()) {}

  // Precondition: the bytes are as many as the column's, where those have a width.
  void set(size_t column, Bytes cell) { cells_[column].assign(as_text(cell)); }
  void set(size_t column, std::string_view text) { set(column, as_bytes(text)); }
  void set(size_t column, const char* text) { set(column, as_bytes(text)); }
  // As the column has it. One that does not fit is cut as a conversion does.
  template <class T>
  requires std::is_arithmetic_v<T>
  void set(size_t column, T number) {
    with_number_of(schema_->key()[column].type, [&](auto as) {
      as = static_cast<decltype(as)>(number);
      set(column, Bytes(reinterpret_cast<const std::byte*>(&as), sizeof as));
    });
  }
  // The key of all columns is valid until the next call.
  std::string_view bytes() { return beginning(cells_.size()); }
  // All keys that have these first columns begin so. It is valid until the next call.
  std::string_view beginning(size_t columns);

 private:
  const Schema* schema_;
  std::vector<std::string> cells_;
  std::string key_;
};

// Reads one key after the other. The schema must outlive it, and keys what is read of them.
class STRIDE_API KeyReader {
 public:
  explicit KeyReader(const Schema& schema)
      : schema_(&schema), cells_(schema.key().size()), memory_(cells_.size()) {}

  // False: the bytes are no key of the schema.
  bool read(Bytes key);
  // The cell is of the key that was read last, and as rows have it.
  Bytes operator[](size_t column) const { return cells_[column]; }
  // Precondition: T is as wide as the column's cells.
  template <class T>
  T number(size_t column) const {
    T number;
    std::memcpy(&number, cells_[column].data(), sizeof number);
    return number;
  }

 private:
  const Schema* schema_;
  std::vector<Bytes> cells_;
  std::vector<std::string> memory_;
};

namespace internal {

template <class T>
constexpr Field key_field() {
  Field field;
  if constexpr (std::is_same_v<T, bool>) field.type = FieldType::boolean;
  else if constexpr (std::is_same_v<T, int8_t>) field.type = FieldType::i8;
  else if constexpr (std::is_same_v<T, int16_t>) field.type = FieldType::i16;
  else if constexpr (std::is_same_v<T, int32_t>) field.type = FieldType::i32;
  else if constexpr (std::is_same_v<T, int64_t>) field.type = FieldType::i64;
  else if constexpr (std::is_same_v<T, uint8_t>) field.type = FieldType::u8;
  else if constexpr (std::is_same_v<T, uint16_t>) field.type = FieldType::u16;
  else if constexpr (std::is_same_v<T, uint32_t>) field.type = FieldType::u32;
  else if constexpr (std::is_same_v<T, uint64_t>) field.type = FieldType::u64;
  else if constexpr (std::is_same_v<T, float>) field.type = FieldType::f32;
  else if constexpr (std::is_same_v<T, double>) field.type = FieldType::f64;
  else static_assert(std::is_same_v<T, std::string_view>, "no type of a key's column");
  return field;
}

}  // namespace internal

// Keys of columns whose types the program knows: integers of fixed widths, bool, float, double, and
// std::string_view for strings and bytes.
template <class... Columns>
struct Key {
  static std::string encode(const Columns&... columns) {
    std::string key;
    size_t left = sizeof...(Columns);
    (append(columns, --left == 0, &key), ...);
    return key;
  }
  template <class T>
  using Decoded = std::conditional_t<std::is_same_v<T, std::string_view>, std::string, T>;
  // Nothing: the bytes are no such key.
  static std::optional<std::tuple<Decoded<Columns>...>> decode(Bytes key) {
    return decode_all(key, std::index_sequence_for<Columns...>());
  }

 private:
  template <size_t... I>
  static std::optional<std::tuple<Decoded<Columns>...>> decode_all(Bytes key,
                                                                   std::index_sequence<I...>) {
    bool good = true;
    // In braces, so that they are read from left to right.
    std::tuple<Decoded<Columns>...> parts{
        take<Columns>(I + 1 == sizeof...(Columns), &key, &good)...};
    if (!good || !key.empty()) return std::nullopt;
    return parts;
  }
  template <class T>
  static void append(const T& column, bool last, std::string* key) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      append_key_cell(internal::key_field<T>(), as_bytes(column), last, key);
    } else {
      append_key_cell(internal::key_field<T>(),
                      {reinterpret_cast<const std::byte*>(&column), sizeof column}, last, key);
    }
  }
  template <class T>
  static Decoded<T> take(bool last, Bytes* key, bool* good) {
    std::string memory;
    Bytes cell;
    *good = *good && take_key_cell(internal::key_field<T>(), last, key, &memory, &cell);
    if (!*good) return {};
    if constexpr (std::is_same_v<T, std::string_view>) {
      return std::string(as_text(cell));
    } else if constexpr (std::is_same_v<T, bool>) {
      return cell[0] != std::byte{0};
    } else {
      T number;
      std::memcpy(&number, cell.data(), sizeof number);
      return number;
    }
  }
};

}  // namespace stride
