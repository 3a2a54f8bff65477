// The columns of a table: what they are called, of which type they are, and where each lies in a row.
//
//   Result<Schema> users = Schema::parse("id u64 key, name string, score f64?, tags f32[4]");
//   users->values()[1].name;              // "score"
//   users->find("tags");                  // 2
//   users->to_string();                   // the same text
//
// The text is a list of fields with commas or line ends between: a name, in double quotes where it is
// more than letters, digits and underscores; a type; `?` behind it where cells may be missing (null);
// `key` where the field is of the table's keys. Types are
//
//   bool                          1 byte, 0 or 1
//   i8 i16 i32 i64 u8 u16 u32 u64 f32 f64
//   date                          days since 1970-01-01, in 4 bytes
//   timestamp[s|ms|us|ns]         time since 1970-01-01 00:00:00, in 8 bytes; timestamp: us
//   uuid                          16 bytes
//   string                        UTF-8 of any length
//   bytes                         of any length; bytes[16]: of this one
//   f32[64]                       a vector: so many of one of the types in the first four lines
//
// storage/row_format.h makes rows of cells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

enum class FieldType : uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f32,
  f64,
  date,
  timestamp_s,
  timestamp_ms,
  timestamp_us,
  timestamp_ns,
  uuid,
  string,
  bytes,
};

// "timestamp[ms]"
STRIDE_API std::string_view to_string(FieldType type);
// Bytes of one element; 0: of a string or bytes, which may have any number.
STRIDE_API uint32_t width_of(FieldType type);

struct Field {
  std::string name;
  FieldType type = FieldType::bytes;
  // 0: one element, or bytes of any length. Of `bytes` how many there are; else the elements of a
  // vector.
  uint32_t count = 0;
  bool nullable = false;
  bool operator==(const Field&) const = default;

  bool is_vector() const { return count != 0 && type != FieldType::bytes; }
};
// "f32[64]?"
STRIDE_API std::string type_text(const Field& field);
// The field of a type as in a schema's text; nothing where it is none.
STRIDE_API std::optional<Field> field_of_type(std::string_view type);
// Bytes of every cell; 0: they differ.
STRIDE_API uint32_t cell_width(const Field& field);

inline constexpr uint32_t max_fields = 4096;
inline constexpr uint32_t max_cell_width = 1 << 20;  // of one that is fixed

class STRIDE_API Schema {
 public:
  Schema() = default;  // no columns: keys and values are bytes
  // invalid_argument: a name that is empty or comes twice, more than max_fields, a vector of what
  // has no width, a cell of more than max_cell_width, or a key that may be null.
  static Result<Schema> make(std::vector<Field> values, std::vector<Field> key = {});
  // invalid_argument, too: what is no such text, with the place.
  static Result<Schema> parse(std::string_view text);
  std::string to_string() const;

  bool empty() const { return values_.empty() && key_.empty(); }
  // Else values are bytes.
  bool has_values() const { return !values_.empty(); }
  const std::vector<Field>& values() const { return values_; }
  // Empty: keys are bytes, or what the table's other options say.
  const std::vector<Field>& key() const { return key_; }
  // Bytes of every key; 0: there are no key columns, or keys have any length.
  uint32_t key_width() const { return key_width_; }
  // The value column of a name.
  std::optional<size_t> find(std::string_view name) const;
  bool operator==(const Schema& other) const {
    return values_ == other.values_ && key_ == other.key_;
  }

  // The layout of a row: cells of one width lie at the same place of each.
  uint32_t fixed_bytes() const { return fixed_bytes_; }
  // All rows have fixed_bytes().
  bool is_fixed() const { return variable_.empty(); }
  // Precondition: the column's cells have one width.
  uint32_t offset(size_t column) const { return places_[column].at; }
  // 0: its cells have any length.
  uint32_t width(size_t column) const { return places_[column].width; }
  // Where the bit is that says the cell is there, counted from the row's first bit; no_bit: it always
  // is.
  static constexpr uint32_t no_bit = ~uint32_t{0};
  uint32_t valid_bit(size_t column) const { return places_[column].valid_bit; }
  // Columns of any length, in the order of their bytes.
  const std::vector<uint32_t>& variable() const { return variable_; }

 private:
  struct Place {
    uint32_t at = 0, width = 0, valid_bit = no_bit;
  };
  std::vector<Field> values_, key_;
  std::vector<Place> places_;
  std::vector<uint32_t> variable_;
  uint32_t fixed_bytes_ = 0, key_width_ = 0;
};

}  // namespace stride
