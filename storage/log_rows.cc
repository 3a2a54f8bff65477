#include "storage/log_rows.h"

#include <algorithm>
#include <optional>

namespace stride {
namespace {

// Whether the ends ascend to the size of the column.
bool ends_fit(const std::byte* ends, uint32_t rows, uint64_t bytes, uint64_t max_bytes) {
  uint64_t before = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    uint32_t end;
    std::memcpy(&end, ends + uint64_t{i} * sizeof end, sizeof end);
    if (end < before || end - before > max_bytes) return false;
    before = end;
  }
  return before == bytes;
}

// The one width of all rows; nothing where there are several.
std::optional<uint32_t> common_width(const Column& column) {
  if (column.is_fixed()) return column.width;
  const uint64_t first = column.offsets[0], width = column.offsets[1] - first;
  for (uint64_t i = 1; i < column.size; ++i)
    if (column.offsets[i + 1] - first != (i + 1) * width) return std::nullopt;
  return static_cast<uint32_t>(width);
}

std::byte* put(std::byte* to, const void* bytes, size_t size) {
  if (size > 0) std::memcpy(to, bytes, size);
  return to + size;
}

std::byte* put_ends(std::byte* to, const Column& column) {
  for (uint64_t i = 0; i < column.size; ++i) {
    const auto end = static_cast<uint32_t>(column.offsets[i + 1] - column.offsets[0]);
    to = put(to, &end, sizeof end);
  }
  return to;
}

}  // namespace

void append_log_rows(uint32_t table, const KeyColumn& keys, const ValueColumn& values,
                     const uint8_t* kinds, std::vector<std::byte>* payload) {
  if (keys.size == 0) return;
  const std::optional<uint32_t> key_width = common_width(keys), value_width = common_width(values);
  LogRowsHeader header{};
  header.table = table;
  header.rows = static_cast<uint32_t>(keys.size);
  header.key_width = key_width.value_or(0);
  header.value_width = value_width.value_or(0);
  header.key_bytes = static_cast<uint32_t>(keys.bytes());
  header.value_bytes = static_cast<uint32_t>(values.bytes());
  static constexpr auto all_puts = static_cast<uint8_t>(EntryKind::put);
  // Every row takes a byte at least, so that no small frame stands for many rows.
  const bool has_kinds =
      (header.key_bytes == 0 && header.value_bytes == 0) ||
      (kinds && std::any_of(kinds, kinds + keys.size, [](uint8_t k) { return k != all_puts; }));
  header.flags = (key_width ? LogRowsHeader::fixed_keys : 0) |
                 (value_width ? LogRowsHeader::fixed_values : 0) |
                 (has_kinds ? LogRowsHeader::has_kinds : 0);
  const size_t begin = payload->size();
  payload->resize(begin + sizeof header + (has_kinds ? keys.size : 0) +
                  ((key_width ? 0 : keys.size) + (value_width ? 0 : keys.size)) * sizeof(uint32_t) +
                  header.key_bytes + header.value_bytes);
  std::byte* to = put(payload->data() + begin, &header, sizeof header);
  if (has_kinds && kinds) to = put(to, kinds, keys.size);
  if (has_kinds && !kinds) to = std::fill_n(to, keys.size, std::byte{all_puts});
  if (!key_width) to = put_ends(to, keys);
  if (!value_width) to = put_ends(to, values);
  to = put(to, keys.data + keys.begin(0), header.key_bytes);
  put(to, values.data + values.begin(0), header.value_bytes);
}

void LogRowsEncoder::Strings::clear() {
  bytes.clear();
  offsets.assign(1, 0);
}

void LogRowsEncoder::Strings::add(Bytes string) {
  bytes.insert(bytes.end(), string.begin(), string.end());
  offsets.push_back(bytes.size());
}

void LogRowsEncoder::begin(uint32_t table) {
  table_ = table;
  kinds_.clear();
  keys_.clear();
  values_.clear();
}

void LogRowsEncoder::add(EntryKind kind, Bytes key, Bytes value) {
  kinds_.push_back(static_cast<uint8_t>(kind));
  keys_.add(key);
  values_.add(value);
}

void LogRowsEncoder::end() {
  append_log_rows(table_, keys_.column(), values_.column(), kinds_.data(), out_);
}

bool LogRowsDecoder::next(LogRows* rows) {
  if (left_.empty() || damaged_) return false;
  damaged_ = !decode(rows);
  return !damaged_;
}

// Looks at everything that a row is found by, so that no bytes whatever lead outside the payload.
bool LogRowsDecoder::decode(LogRows* rows) {
  LogRowsHeader h;
  if (left_.size() < sizeof h) return false;
  std::memcpy(&h, left_.data(), sizeof h);
  const bool fixed_keys = h.flags & LogRowsHeader::fixed_keys;
  const bool fixed_values = h.flags & LogRowsHeader::fixed_values;
  const bool has_kinds = h.flags & LogRowsHeader::has_kinds;
  constexpr uint32_t known =
      LogRowsHeader::fixed_keys | LogRowsHeader::fixed_values | LogRowsHeader::has_kinds;
  if (h.rows == 0 || (h.flags & ~known)) return false;
  if (fixed_keys && fixed_values && !has_kinds && h.key_width == 0 && h.value_width == 0)
    return false;
  const uint64_t kind_bytes = has_kinds ? h.rows : 0;
  const uint64_t key_end_bytes = fixed_keys ? 0 : uint64_t{h.rows} * 4;
  const uint64_t value_end_bytes = fixed_values ? 0 : uint64_t{h.rows} * 4;
  const uint64_t total =
      sizeof h + kind_bytes + key_end_bytes + value_end_bytes + h.key_bytes + h.value_bytes;
  if (total > left_.size()) return false;
  if (fixed_keys && uint64_t{h.rows} * h.key_width != h.key_bytes) return false;
  if (fixed_keys && h.key_width > max_key_bytes) return false;
  if (fixed_values && uint64_t{h.rows} * h.value_width != h.value_bytes) return false;

  const std::byte* at = left_.data() + sizeof h;
  *rows = {};
  rows->table = h.table;
  rows->count = h.rows;
  rows->key_width = h.key_width;
  rows->value_width = h.value_width;
  if (has_kinds) rows->kinds = at;
  at += kind_bytes;
  if (!fixed_keys) rows->key_ends = at;
  at += key_end_bytes;
  if (!fixed_values) rows->value_ends = at;
  at += value_end_bytes;
  rows->keys = {at, h.key_bytes};
  rows->values = {at + h.key_bytes, h.value_bytes};
  left_ = left_.subspan(total);
  for (uint32_t i = 0; has_kinds && i < h.rows; ++i) {
    auto kind = static_cast<EntryKind>(rows->kinds[i]);
    if (kind != EntryKind::put && kind != EntryKind::tombstone) return false;
  }
  if (!fixed_keys && !ends_fit(rows->key_ends, h.rows, h.key_bytes, max_key_bytes)) return false;
  return fixed_values || ends_fit(rows->value_ends, h.rows, h.value_bytes, max_value_bytes);
}

}  // namespace stride
