#include "benchmark/peers/hash_index.h"

#include "benchmark/datasets/key_columns.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t min_finds_per_part = 256;

template <class Map, class Key>
uint32_t find_or_absent(const Map& map, const Key& key) {
  auto found = map.find(key);
  return found == map.end() ? Location::absent : found->second;
}

}  // namespace

HashIndex::HashIndex(const KeyColumn& keys)
    : number_width_(keys.is_fixed() && (keys.width == 4 || keys.width == 8) ? keys.width : 0) {
  if (number_width_) {
    numbers_.reserve(keys.size);
  } else {
    texts_.reserve(keys.size);
  }
  for (uint64_t row = 0; row < keys.size; ++row) {
    auto rank = static_cast<uint32_t>(row);
    if (number_width_ == 4) {
      numbers_.emplace(load_big_endian<uint32_t>(keys.data + row * 4), rank);
    } else if (number_width_ == 8) {
      numbers_.emplace(load_big_endian<uint64_t>(keys.data + row * 8), rank);
    } else {
      texts_.emplace(as_text(keys[row]), rank);
    }
  }
}

void HashIndex::find_ranks(const KeyColumn& queries, Parallel* parallel,
                           std::span<uint32_t> out) const {
  auto search = [&](const auto& rank_of) {
    auto body = [&](unsigned, uint64_t begin, uint64_t end) {
      for (; begin < end; ++begin) out[begin] = rank_of(begin);
    };
    parallel->for_parts(queries.size, min_finds_per_part, body);
  };
  if (number_width_ == 4) {
    search([&](uint64_t i) {
      return find_or_absent(numbers_, load_big_endian<uint32_t>(queries.data + i * 4));
    });
  } else if (number_width_ == 8) {
    search([&](uint64_t i) {
      return find_or_absent(numbers_, load_big_endian<uint64_t>(queries.data + i * 8));
    });
  } else {
    search([&](uint64_t i) { return find_or_absent(texts_, as_text(queries[i])); });
  }
}

}  // namespace stride::benchmark
