#include "storage/key_filter.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stride {
namespace {

// Where the compiler knows how many bytes a key has, its hash is a few multiplications.
template <uint64_t width>
uint64_t hash_number(const std::byte* keys, uint64_t row) {
  return XXH3_64bits(keys + row * width, width);
}

}  // namespace

uint64_t hash_key(Bytes key) { return XXH3_64bits(key.data(), key.size()); }

void hash_keys(const PackedColumn& keys, uint64_t first, std::span<uint64_t> hashes) {
  const uint64_t count = hashes.size();
  if (keys.fixed && keys.width == 8) {
    for (uint64_t i = 0; i < count; ++i) hashes[i] = hash_number<8>(keys.data, first + i);
  } else {
    for (uint64_t i = 0; i < count; ++i) hashes[i] = hash_key(keys[first + i]);
  }
}

void hash_keys(const KeyColumn& keys, std::span<const uint32_t> rows, uint64_t* hashes) {
  if (keys.is_fixed() && keys.width == 8) {
    for (uint32_t row : rows) hashes[row] = hash_number<8>(keys.data, row);
  } else {
    for (uint32_t row : rows) hashes[row] = hash_key(keys[row]);
  }
}

}  // namespace stride
