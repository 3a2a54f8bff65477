// Signed numbers as keys.
#include <bit>
#include <cstring>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

namespace {

static_assert(std::endian::native == std::endian::little);
constexpr uint64_t sign = uint64_t{1} << 63;

uint64_t byte_swapped(uint64_t n) { return __builtin_bswap64(n); }

Status check_both(const void* numbers, const void* keys, uint64_t n) {
  if (n == 0) return {};
  STRIDE_TRY(check_pointer(numbers, "numbers"));
  return check_pointer(keys, "keys");
}

}  // namespace

int stride_int64_to_keys(const int64_t* numbers, uint64_t n, void* keys) {
  return run([&] {
    STRIDE_TRY(check_both(numbers, keys, n));
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t key = byte_swapped(static_cast<uint64_t>(numbers[i]) ^ sign);
      std::memcpy(static_cast<char*>(keys) + 8 * i, &key, 8);
    }
    return Status();
  });
}

int stride_int64_from_keys(const void* keys, uint64_t n, int64_t* numbers) {
  return run([&] {
    STRIDE_TRY(check_both(numbers, keys, n));
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t key;
      std::memcpy(&key, static_cast<const char*>(keys) + 8 * i, 8);
      numbers[i] = static_cast<int64_t>(byte_swapped(key) ^ sign);
    }
    return Status();
  });
}
