// What a frame of the write-ahead log holds: rows of one table after the other, as columns.
//
//   append_log_rows(table.id, keys, values, kinds, &payload);
//
//   LogRowsDecoder in(frame.payload);
//   LogRows rows;
//   while (in.next(&rows)) for (uint32_t i = 0; i < rows.count; ++i) use(rows.key(i), ...);
//
// Rows of a table stand in the order of the changes. A table may come more than once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "storage/column.h"
#include "storage/segment_format.h"

namespace stride {

// Then the kinds (a byte a row, where has_kinds), where each key and each value ends (4 bytes a
// row, unless they have one width), the keys, and the values.
struct LogRowsHeader {
  static constexpr uint32_t fixed_keys = 1, fixed_values = 2, has_kinds = 4;  // bits of `flags`
  uint32_t table;
  uint32_t rows;
  uint32_t flags;
  uint32_t key_width;    // where fixed_keys
  uint32_t value_width;  // where fixed_values
  uint32_t key_bytes;    // of all keys
  uint32_t value_bytes;
};
static_assert(sizeof(LogRowsHeader) == 28);

// Rows of one table, in the bytes of a frame. Every row lies within them.
struct LogRows {
  uint32_t table = 0;
  uint32_t count = 0;
  const std::byte* kinds = nullptr;     // null: all are puts
  const std::byte* key_ends = nullptr;  // null: one width
  const std::byte* value_ends = nullptr;
  uint32_t key_width = 0, value_width = 0;
  Bytes keys, values;

  EntryKind kind(uint32_t i) const {
    return kinds ? static_cast<EntryKind>(kinds[i]) : EntryKind::put;
  }
  Bytes key(uint32_t i) const { return row(keys, key_ends, key_width, i); }
  Bytes value(uint32_t i) const { return row(values, value_ends, value_width, i); }

 private:
  static uint64_t end(const std::byte* ends, uint32_t i) {
    uint32_t n;
    std::memcpy(&n, ends + uint64_t{i} * sizeof n, sizeof n);
    return n;
  }
  static Bytes row(Bytes column, const std::byte* ends, uint32_t width, uint32_t i) {
    if (!ends) return column.subspan(uint64_t{i} * width, width);
    const uint64_t begin = i ? end(ends, i - 1) : 0;
    return column.subspan(begin, end(ends, i) - begin);
  }
};

// Throws std::bad_alloc, with the payload as it was. kinds: one for each row; null: all are puts.
void append_log_rows(uint32_t table, const KeyColumn& keys, const ValueColumn& values,
                     const uint8_t* kinds, std::vector<std::byte>* payload);

// The same, row by row.
class LogRowsEncoder {
 public:
  // Appends to `payload`, which stays the caller's.
  explicit LogRowsEncoder(std::vector<std::byte>* payload) : out_(payload) {}

  void begin(uint32_t table);
  void add(EntryKind kind, Bytes key, Bytes value);
  // A table without rows leaves nothing.
  void end();

 private:
  struct Strings {
    std::vector<std::byte> bytes;
    std::vector<uint64_t> offsets{0};
    void clear();
    void add(Bytes string);
    Column column() const {
      return Column::variable(bytes.data(), offsets.data(), offsets.size() - 1);
    }
  };

  std::vector<std::byte>* out_;
  uint32_t table_ = 0;
  std::vector<uint8_t> kinds_;
  Strings keys_, values_;
};

class LogRowsDecoder {
 public:
  explicit LogRowsDecoder(Bytes payload) : left_(payload) {}
  // False at the end, and where what follows is not whole.
  bool next(LogRows* rows);
  bool damaged() const { return damaged_; }

 private:
  bool decode(LogRows* rows);

  Bytes left_;
  bool damaged_ = false;
};

}  // namespace stride
