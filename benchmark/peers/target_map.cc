#include "benchmark/peers/target_map.h"

#include "benchmark/datasets/key_columns.h"

namespace stride::benchmark {
namespace {

uint64_t key_number(Bytes key) {
  if (key.size() == 4) return load_big_endian<uint32_t>(key.data());
  return load_big_endian<uint64_t>(key.data());
}

}  // namespace

TargetMap::TargetMap(const KeyColumn& keys, std::span<const uint32_t> targets)
    : is_number_(keys.is_fixed() && (keys.width == 4 || keys.width == 8)) {
  is_number_ ? numbers_.reserve(keys.size) : texts_.reserve(keys.size);
  for (uint64_t i = 0; i < keys.size; ++i) {
    if (is_number_) {
      numbers_.emplace(key_number(keys[i]), targets[i]);
    } else {
      texts_.emplace(as_text(keys[i]), targets[i]);
    }
  }
}

void TargetMap::find(const KeyColumn& keys, std::span<uint32_t> targets) const {
  if (is_number_) {
    for (uint64_t i = 0; i < keys.size; ++i)
      targets[i] = numbers_.find(key_number(keys[i]))->second;
  } else {
    for (uint64_t i = 0; i < keys.size; ++i) targets[i] = texts_.find(as_text(keys[i]))->second;
  }
}

}  // namespace stride::benchmark
