#include "storage/key_format.h"

#include <algorithm>

namespace stride {
namespace {

bool has_any_length(const Field& field) { return cell_width(field) == 0; }
bool is_of_bytes(const Field& field) {
  return width_of(field.type) == 0 || field.type == FieldType::uuid;
}

// Turns the bytes around, and the bits that make the order that of the numbers. From a cell to a key
// and, with inverse, back.
template <class T>
void order(const std::byte* from, bool inverse, std::byte* to) {
  constexpr size_t width = sizeof(T);
  using Bits = std::conditional_t<
      width == 1, uint8_t,
      std::conditional_t<width == 2, uint16_t, std::conditional_t<width == 4, uint32_t, uint64_t>>>;
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * width - 1));
  Bits bits = 0;
  if (inverse) {
    for (size_t i = 0; i < width; ++i)
      bits = static_cast<Bits>(bits << (width == 1 ? 0 : 8) | std::to_integer<Bits>(from[i]));
  } else {
    std::memcpy(&bits, from, width);
  }
  if constexpr (std::is_floating_point_v<T>) {
    // A key whose sign bit is set has a positive number.
    const bool negative = ((bits & sign) != 0) != inverse;
    bits = static_cast<Bits>(negative ? ~bits : bits ^ sign);
  } else if constexpr (std::is_signed_v<T>) {
    bits = static_cast<Bits>(bits ^ sign);
  }
  if (inverse) {
    std::memcpy(to, &bits, width);
  } else {
    for (size_t i = 0; i < width; ++i) to[i] = static_cast<std::byte>(bits >> (8 * (width - 1 - i)));
  }
}

void append_escaped(Bytes cell, std::string* key) {
  for (std::byte b : cell) {
    *key += static_cast<char>(b);
    if (b == std::byte{0}) *key += '\xFF';
  }
  key->append(2, '\0');
}

bool take_escaped(Bytes* key, std::string* memory, Bytes* cell) {
  memory->clear();
  for (size_t i = 0; i + 1 < key->size(); ++i) {
    const std::byte b = (*key)[i];
    if (b == std::byte{0}) {
      const std::byte behind = (*key)[++i];
      if (behind == std::byte{0}) {
        *key = key->subspan(i + 1);
        *cell = as_bytes(*memory);
        return true;
      }
      if (behind != std::byte{0xFF}) return false;
    }
    *memory += static_cast<char>(b);
  }
  return false;
}

}  // namespace

void append_key_cell(const Field& field, Bytes cell, bool last, std::string* key) {
  if (has_any_length(field) && !last) return append_escaped(cell, key);
  if (is_of_bytes(field)) {
    key->append(as_text(cell));
    return;
  }
  with_number_of(field.type, [&](auto number) {
    std::byte ordered[sizeof number];
    order<decltype(number)>(cell.data(), /*inverse=*/false, ordered);
    key->append(as_text(ordered));
  });
}

bool take_key_cell(const Field& field, bool last, Bytes* key, std::string* memory, Bytes* cell) {
  if (has_any_length(field) && !last) return take_escaped(key, memory, cell);
  const size_t width = has_any_length(field) ? key->size() : cell_width(field);
  if (key->size() < width) return false;
  const Bytes stored = key->first(width);
  *key = key->subspan(width);
  *cell = stored;
  if (is_of_bytes(field)) return true;
  memory->resize(width);
  with_number_of(field.type, [&](auto number) {
    order<decltype(number)>(stored.data(), /*inverse=*/true,
                            reinterpret_cast<std::byte*>(memory->data()));
  });
  *cell = as_bytes(*memory);
  return true;
}

std::string_view KeyWriter::beginning(size_t columns) {
  key_.clear();
  for (size_t i = 0; i < columns; ++i)
    append_key_cell(schema_->key()[i], as_bytes(cells_[i]), i + 1 == cells_.size(), &key_);
  return key_;
}

bool KeyReader::read(Bytes key) {
  for (size_t i = 0; i < cells_.size(); ++i)
    if (!take_key_cell(schema_->key()[i], i + 1 == cells_.size(), &key, &memory_[i], &cells_[i]))
      return false;
  return key.empty();
}

}  // namespace stride
