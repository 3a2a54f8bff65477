// How starts are filled in the slots that have no keys, however many lie between two keys.
#pragma once

#include <thrust/iterator/reverse_iterator.h>
#include <thrust/scan.h>

#include <cstddef>
#include <cstdint>

#include "gpu/keys/key_bits.h"

namespace stride {

struct Lesser {
  STRIDE_HD uint32_t operator()(uint32_t a, uint32_t b) const { return a < b ? a : b; }
};

// Each of n numbers becomes the least of it and those behind it.
template <class Policy>
void take_least_behind(const Policy& policy, uint32_t* numbers, uint64_t n) {
  const auto last = thrust::make_reverse_iterator(numbers + n);
  thrust::inclusive_scan(policy, last, last + static_cast<ptrdiff_t>(n), last, Lesser());
}

}  // namespace stride
