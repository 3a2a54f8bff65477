#include "storage/key_format.h"

#include <algorithm>

#include "storage/key_order.h"

namespace stride {
namespace {

bool has_any_length(const Field& field) { return cell_width(field) == 0; }

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
    order_number<decltype(number)>(cell.data(), ordered);
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
    unorder_number<decltype(number)>(stored.data(), reinterpret_cast<std::byte*>(memory->data()));
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
