// Columns of byte strings: what every bulk call takes and returns.
//
//   std::vector<uint64_t> be = ...;                               // 8-byte big-endian keys
//   KeyColumn keys = Column::fixed(be.data(), 8, be.size());
//   ValueColumn values = Column::variable(bytes.data(), offsets.data(), n);  // offsets[n + 1]
//   std::span<const std::byte> third = values[2];
//
// A Column is a view: it owns nothing, is trivially copyable, and is valid as long as the memory
// that it points to. Its two layouts are those of Apache Arrow's FixedSizeBinary and LargeBinary.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "storage/export.h"

namespace stride {

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}
inline std::string_view as_text(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}
// Keys compare as unsigned bytes; a prefix sorts before what it is a prefix of.
inline int compare(Bytes a, Bytes b) {
  size_t n = a.size() < b.size() ? a.size() : b.size();
  int c = n ? std::memcmp(a.data(), b.data(), n) : 0;
  return c ? c : (a.size() < b.size() ? -1 : a.size() > b.size());
}
inline bool equal(Bytes a, Bytes b) { return a.size() == b.size() && compare(a, b) == 0; }

struct Column {
  const std::byte* data = nullptr;
  const uint64_t* offsets =
      nullptr;         // size + 1 ascending byte offsets into data; null: fixed width
  uint64_t size = 0;   // rows
  uint32_t width = 0;  // bytes a row; used only where offsets is null

  static Column fixed(const void* data, uint32_t width, uint64_t rows) {
    return {static_cast<const std::byte*>(data), nullptr, rows, width};
  }
  static Column variable(const void* data, const uint64_t* offsets, uint64_t rows) {
    return {static_cast<const std::byte*>(data), offsets, rows, 0};
  }
  constexpr bool is_fixed() const { return offsets == nullptr; }
  constexpr uint64_t begin(uint64_t row) const { return offsets ? offsets[row] : row * width; }
  // Total bytes of all rows.
  uint64_t bytes() const { return size ? begin(size) - begin(0) : 0; }
  constexpr Bytes operator[](uint64_t row) const {
    uint64_t b = begin(row);
    return {data + b, begin(row + 1) - b};
  }
  // Rows [first, first + rows).
  constexpr Column slice(uint64_t first, uint64_t rows) const {
    return offsets ? Column{data, offsets + first, rows, 0}
                   : Column{data + first * width, nullptr, rows, width};
  }
};
using KeyColumn = Column;
using ValueColumn = Column;

// Row ends of a stored variable-width column, packed: one 64-bit base for each group of 128 rows
// and a delta of 2, 4 or 8 bytes for each row, so that rows of up to 511 bytes cost 2.06 bytes.
//
//   begin(row) = bases[row >> 7] + deltas[row]     (delta_width bytes each, little-endian)
//
// There are rows + 1 deltas and (rows >> 7) + 1 bases.
struct PackedOffsets {
  static constexpr uint32_t group_bits = 7;
  const uint64_t* bases = nullptr;
  const void* deltas = nullptr;
  uint32_t delta_width = 0;  // 2, 4 or 8

  // constexpr, so that device code may call it.
  constexpr uint64_t operator[](uint64_t row) const {
    uint64_t base = bases[row >> group_bits];
    switch (delta_width) {
      case 2:
        return base + static_cast<const uint16_t*>(deltas)[row];
      case 4:
        return base + static_cast<const uint32_t*>(deltas)[row];
      default:
        return base + static_cast<const uint64_t*>(deltas)[row];
    }
  }
};

// A column as a segment stores it: fixed width, or variable with packed offsets. Reading a row
// never leaves [data, data + data_bytes), whatever the offsets say.
struct PackedColumn {
  const std::byte* data = nullptr;
  uint64_t data_bytes = 0;
  uint64_t size = 0;   // rows
  uint32_t width = 0;  // bytes a row where fixed
  bool fixed = true;
  PackedOffsets offsets{};  // used only where !fixed

  // Counts the bytes of the rows, offsets left out.
  uint64_t row_bytes() const { return fixed ? size * width : data_bytes; }
  constexpr Bytes operator[](uint64_t row) const {
    if (fixed) return {data + row * width, width};
    uint64_t b = offsets[row], e = offsets[row + 1];
    e = e < data_bytes ? e : data_bytes;
    b = b < e ? b : e;
    return {data + b, e - b};
  }
};

// The values of a segment's rows: a column with one for each or, where rows share them, one that
// has each value once, and for each row the number of its value in that column.
struct ValueRows {
  PackedColumn column;
  const void* numbers = nullptr;  // number_width bytes each, little-endian; null: not shared
  uint32_t number_width = 0;      // 1, 2 or 4

  bool shared() const { return numbers != nullptr; }
  // Bytes needed to number this many values.
  static constexpr uint32_t width_for(uint64_t values) {
    return values <= 0x100 ? 1 : values <= 0x10000 ? 2 : 4;
  }
  // Which row of `column` has the value of a row. As it is stored: Segment::ensure() has checked it
  // if it is less than column.size.
  uint64_t position(uint64_t row) const {
    if (!numbers) return row;
    switch (number_width) {
      case 1:
        return static_cast<const uint8_t*>(numbers)[row];
      case 2:
        return static_cast<const uint16_t*>(numbers)[row];
      default:
        return static_cast<const uint32_t*>(numbers)[row];
    }
  }
  // Empty where the row's number is out of range, so that no bytes whatever lead outside the
  // column.
  Bytes operator[](uint64_t row) const {
    if (!numbers) return column[row];
    uint64_t at = position(row);
    return at < column.size ? column[at] : Bytes();
  }
};

// One bit a row, least significant first, as an Arrow validity bitmap. 1: present.
class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(uint64_t bits) : words_((bits + 63) / 64), size_(bits) {}
  // Clears all bits and sets how many there are; keeps its memory.
  void reset(uint64_t bits) {
    words_.assign((bits + 63) / 64, 0);
    size_ = bits;
  }
  uint64_t size() const { return size_; }
  bool operator[](uint64_t i) const { return words_[i >> 6] >> (i & 63) & 1; }
  void set(uint64_t i) { words_[i >> 6] |= uint64_t{1} << (i & 63); }
  STRIDE_API uint64_t count() const;
  std::span<uint64_t> words() { return words_; }
  std::span<const uint64_t> words() const { return words_; }

 private:
  std::vector<uint64_t> words_;
  uint64_t size_ = 0;
};

// Calls use(i) for each bit i that is set, in ascending order.
template <class Use>
void for_each_bit(std::span<const uint64_t> words, const Use& use) {
  for (uint64_t w = 0; w < words.size(); ++w)
    for (uint64_t left = words[w]; left != 0; left &= left - 1)
      use(w * 64 + static_cast<uint64_t>(std::countr_zero(left)));
}

// Sets those bits of [first, first + count) for which is_set(i), i < count, says so; they are
// clear. Other threads may set other bits of the same words meanwhile.
template <class IsSet>
void set_bits(std::span<uint64_t> words, uint64_t first, uint64_t count, const IsSet& is_set) {
  for (uint64_t i = 0; i < count;) {
    uint64_t shift = (first + i) % 64, n = count - i < 64 - shift ? count - i : 64 - shift;
    uint64_t& word = words[(first + i) / 64];
    uint64_t bits = 0;
    if (n == 64) {
      // Bytes first, which compilers do several of at once; a product moves eight together.
      uint8_t flags[64];
      for (uint64_t k = 0; k < 64; ++k) flags[k] = is_set(i + k);
      for (uint64_t k = 0; k < 64; k += 8) {
        uint64_t eight;
        std::memcpy(&eight, flags + k, 8);
        bits |= (eight * 0x0102040810204080) >> 56 << k;
      }
      word = bits;
    } else {
      for (uint64_t k = 0; k < n; ++k) bits |= uint64_t{is_set(i + k)} << k;
      if (bits) std::atomic_ref<uint64_t>(word).fetch_or(bits << shift, std::memory_order_relaxed);
    }
    i += n;
  }
}

inline constexpr uint32_t max_key_bytes = 65535;
inline constexpr uint64_t max_value_bytes = 0xFFFFFFFFull;  // 4 GiB - 1

}  // namespace stride
