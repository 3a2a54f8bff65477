#include "storage/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stride {

#if defined(__x86_64__)
// checksum_avx2.cc: the same function, compiled for processors with AVX2.
XXH64_hash_t checksum_avx2(const void* bytes, size_t size);
#endif

uint64_t checksum(Bytes bytes) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  // Below the size at which the vectors come in, both are the same code.
  if (has_avx2 && bytes.size() > 240) return checksum_avx2(bytes.data(), bytes.size());
#endif
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace stride
