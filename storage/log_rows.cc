#include "storage/log_rows.h"

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

}  // namespace

void LogRowsEncoder::Lengths::clear() {
  ends.clear();
  width = 0;
  fixed = true;
}

void LogRowsEncoder::Lengths::add(uint64_t bytes) {
  const auto n = static_cast<uint32_t>(bytes);
  if (ends.empty()) width = n;
  fixed &= n == width;
  ends.push_back((ends.empty() ? 0 : ends.back()) + n);
}

void LogRowsEncoder::begin(uint32_t table) {
  table_ = table;
  has_kinds_ = false;
  kinds_.clear();
  keys_.clear();
  values_.clear();
  key_lengths_.clear();
  value_lengths_.clear();
}

void LogRowsEncoder::add(EntryKind kind, Bytes key, Bytes value) {
  has_kinds_ |= kind != EntryKind::put;
  kinds_.push_back(static_cast<std::byte>(kind));
  keys_.insert(keys_.end(), key.begin(), key.end());
  values_.insert(values_.end(), value.begin(), value.end());
  key_lengths_.add(key.size());
  value_lengths_.add(value.size());
}

void LogRowsEncoder::end() {
  if (kinds_.empty()) return;
  LogRowsHeader header{};
  header.table = table_;
  header.rows = static_cast<uint32_t>(kinds_.size());
  // Every row takes a byte at least, so that no small frame stands for many rows.
  has_kinds_ |= keys_.empty() && values_.empty();
  header.flags = (key_lengths_.fixed ? LogRowsHeader::fixed_keys : 0) |
                 (value_lengths_.fixed ? LogRowsHeader::fixed_values : 0) |
                 (has_kinds_ ? LogRowsHeader::has_kinds : 0);
  header.key_width = key_lengths_.fixed ? key_lengths_.width : 0;
  header.value_width = value_lengths_.fixed ? value_lengths_.width : 0;
  header.key_bytes = static_cast<uint32_t>(keys_.size());
  header.value_bytes = static_cast<uint32_t>(values_.size());
  put(&header, sizeof header);
  if (has_kinds_) put(kinds_.data(), kinds_.size());
  for (const Lengths* lengths : {&key_lengths_, &value_lengths_})
    if (!lengths->fixed) put(lengths->ends.data(), lengths->ends.size() * sizeof(uint32_t));
  put(keys_.data(), keys_.size());
  put(values_.data(), values_.size());
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
