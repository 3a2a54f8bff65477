// Sorting a key column on a device.
//
// Keys of 4 or 8 bytes are sorted as numbers. All others are sorted by their first 8 bytes (zeros
// past a key's end); rows that are equal in those are told apart by length where a key ends there,
// for the shorter one sorts first, and by the next 8 bytes otherwise. A round works on the rows
// that are still tied, so that memory and work grow with keys and not with the length of the
// longest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/device/cuda_space.cuh"
#include "gpu/keys/key_bits.h"

namespace stride {

// Runs a CUB algorithm: call(scratch, bytes, arguments...).
template <class Call>
void with_scratch(CudaSpace& space, const char* what, const Call& call) {
  size_t bytes = 0;
  cuda_check(call(static_cast<void*>(nullptr), bytes), what);
  CudaArray<std::byte> scratch = space.buffer<std::byte>(std::max<size_t>(bytes, 1));
  cuda_check(call(static_cast<void*>(scratch.data()), bytes), what);
}

template <class Stored>
struct Swapped {
  STRIDE_HD Stored operator()(Stored x) const {
    return static_cast<Stored>(byte_swap(x) >> (64 - 8 * sizeof(Stored)));
  }
};

template <class Stored>
struct SwapBytes {
  const Stored* from;
  Stored* to;
  STRIDE_HD void operator()(uint64_t i) const { to[i] = Swapped<Stored>()(from[i]); }
};

// Sorts big-endian numbers of 32 or 64 bits and drops equal ones. Returns how many are left, at the
// front of `out`.
template <class Stored>
uint64_t sort_numbers(CudaSpace& space, const Stored* numbers, uint64_t count,
                      CudaArray<std::byte>* out);

// Sorts rows by whole keys, without those that are equal to a newer one (a larger row). Returns how
// many are left, at the front of `order`, which has room for all rows.
uint64_t sort_rows(CudaSpace& space, const KeyColumn& keys, uint32_t* order);

}  // namespace stride
