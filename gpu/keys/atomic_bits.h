// Bits that several threads set in one word.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu/keys/key_bits.h"

namespace stride {

STRIDE_HD inline void set_bits(uint32_t* word, uint32_t bits) {
#if defined(__CUDA_ARCH__)
  atomicOr(word, bits);
#else
  std::atomic_ref<uint32_t>(*word).fetch_or(bits, std::memory_order_relaxed);
#endif
}

}  // namespace stride
