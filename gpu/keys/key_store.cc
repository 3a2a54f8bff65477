#include "gpu/keys/key_store.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace stride {

namespace {

constexpr uint64_t group_rows = uint64_t{1} << PackedOffsets::group_bits;
constexpr uint64_t rows_per_task = 64 * group_rows;

// Row i of what is stored is this row of the source.
uint64_t source_row(std::span<const uint32_t> order, uint64_t i) {
  return order.empty() ? i : order[i];
}

uint64_t rows_of(const KeyColumn& keys, std::span<const uint32_t> order) {
  return order.empty() ? keys.size : order.size();
}

}  // namespace

KeyStore::KeyStore(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order) {
  column_.size = rows_of(keys, order);
  column_.fixed = keys.is_fixed();
  if (column_.fixed) {
    store_fixed(pool, keys, order);
  } else {
    store_variable(pool, keys, order);
  }
  column_.data = data_.data();
  column_.data_bytes = data_.size();
}

uint64_t KeyStore::bytes() const { return data_.size() + bases_.size() * 8 + deltas_.size(); }

void KeyStore::store_fixed(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order) {
  column_.width = keys.width;
  data_.resize(column_.size * keys.width);
  if (keys.width == 0) return;
  pool.run(column_.size, rows_per_task, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      std::memcpy(data_.data() + i * keys.width, keys.data + source_row(order, i) * keys.width,
                  keys.width);
    }
  });
}

void KeyStore::store_variable(TaskPool& pool, const KeyColumn& keys,
                              std::span<const uint32_t> order) {
  uint64_t rows = column_.size, groups = (rows >> PackedOffsets::group_bits) + 1;
  bases_.resize(groups);
  pool.run(groups, rows_per_task / group_rows, [&](uint64_t begin, uint64_t end) {
    for (uint64_t g = begin; g < end; ++g) {
      uint64_t bytes = 0;
      for (uint64_t i = g * group_rows; i < std::min(rows, (g + 1) * group_rows); ++i) {
        bytes += keys[source_row(order, i)].size();
      }
      bases_[g] = bytes;
    }
  });
  uint64_t total = 0, widest = 0;
  for (uint64_t& base : bases_) {
    uint64_t bytes = base;
    base = total;
    total += bytes;
    widest = std::max(widest, bytes);
  }
  data_.resize(total);
  column_.offsets.delta_width = widest <= 0xFFFF ? 2 : 4;  // 128 keys of 65,535 bytes at most
  deltas_.resize((rows + 1) * column_.offsets.delta_width);
  column_.offsets.delta_width == 2 ? store_rows<uint16_t>(pool, keys, order)
                                   : store_rows<uint32_t>(pool, keys, order);
  column_.offsets.bases = bases_.data();
  column_.offsets.deltas = deltas_.data();
}

template <class Delta>
void KeyStore::store_rows(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order) {
  auto* deltas = reinterpret_cast<Delta*>(deltas_.data());
  uint64_t rows = column_.size;
  pool.run(bases_.size(), rows_per_task / group_rows, [&](uint64_t begin, uint64_t end) {
    for (uint64_t g = begin; g < end; ++g) {
      uint64_t at = 0;
      for (uint64_t i = g * group_rows; i <= std::min(rows, (g + 1) * group_rows - 1); ++i) {
        deltas[i] = static_cast<Delta>(at);
        if (i == rows) break;
        Bytes key = keys[source_row(order, i)];
        if (!key.empty()) std::memcpy(data_.data() + bases_[g] + at, key.data(), key.size());
        at += key.size();
      }
    }
  });
}

}  // namespace stride
