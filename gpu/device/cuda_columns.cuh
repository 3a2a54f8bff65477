// Key columns in device memory: brought there, put in order, and with packed offsets.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/scan.h>
#include <thrust/transform_reduce.h>

#include <cstdint>

#include "gpu/device/cuda_space.cuh"
#include "gpu/device/cuda_transfer.h"
#include "gpu/keys/key_bits.h"

namespace stride {

// A column as callers lay it out, in device memory of its own or of the caller's.
struct DeviceColumn {
  KeyColumn view;
  CudaArray<std::byte> data;
  CudaArray<uint64_t> offsets;
};

// A column as a segment lays it out, likewise.
struct DevicePackedColumn {
  PackedColumn view;
  CudaArray<std::byte> data;
  CudaArray<uint64_t> bases;
  CudaArray<std::byte> deltas;

  uint64_t bytes() const { return data.bytes() + bases.bytes() + deltas.bytes(); }
  void outlive_stream() {
    data.outlive_stream();
    bases.outlive_stream();
    deltas.outlive_stream();
  }
};

// Whether rows can be read in whole words without leaving the caller's memory.
inline bool reads_whole_words(const KeyColumn& keys) {
  return keys.is_fixed() && (keys.width % 8 == 0 || keys.width == 4) &&
         reinterpret_cast<uintptr_t>(keys.data) % sector_alignment == 0;
}

// Brings a column to the device, unless it is there.
inline DeviceColumn copy_to_device(CudaTransfer& transfer, CudaSpace& space,
                                   const KeyColumn& keys) {
  DeviceColumn column;
  column.view = keys;
  if (keys.size == 0 ||
      transfer.device().owns(keys.offsets ? static_cast<const void*>(keys.offsets) : keys.data)) {
    return column;
  }
  uint64_t first = keys.begin(0);
  column.data = space.buffer<std::byte>(keys.bytes());
  column.data.clear_padding();
  transfer.to_device(column.data.data(), keys.data + first, keys.bytes(), space.stream());
  column.view.data = column.data.data() - first;
  if (!keys.is_fixed()) {
    column.offsets = space.buffer<uint64_t>(keys.size + 1);
    transfer.to_device(column.offsets.data(), keys.offsets, (keys.size + 1) * 8, space.stream());
    column.view.offsets = column.offsets.data();
  }
  return column;
}

// The length of row order[i], or of row i where there is no order.
struct RowLength {
  KeyColumn keys;
  const uint32_t* order;
  STRIDE_HD uint64_t row(uint64_t i) const { return order ? order[i] : i; }
  STRIDE_HD uint64_t operator()(uint64_t i) const {
    return keys.begin(row(i) + 1) - keys.begin(row(i));
  }
};

// The packed offset of a row, and the base of its group.
template <class Delta>
struct PackOffsets {
  const uint64_t* ends;  // where each row begins, all rows laid end to end; rows + 1
  uint64_t* bases;
  Delta* deltas;
  STRIDE_HD void operator()(uint64_t i) const {
    uint64_t base = ends[i >> PackedOffsets::group_bits << PackedOffsets::group_bits];
    if (i % (1u << PackedOffsets::group_bits) == 0) bases[i >> PackedOffsets::group_bits] = base;
    deltas[i] = static_cast<Delta>(ends[i] - base);
  }
};

struct GroupBytes {
  const uint64_t* ends;
  uint64_t rows;
  STRIDE_HD uint64_t operator()(uint64_t group) const {
    uint64_t first = group << PackedOffsets::group_bits;
    uint64_t last = first + (1u << PackedOffsets::group_bits);
    return ends[last < rows ? last : rows] - ends[first];
  }
};

// Copies rows to where they begin; eight threads a row.
__global__ inline void gather_rows(KeyColumn keys, const uint32_t* order, const uint64_t* ends,
                                   uint64_t rows, std::byte* out) {
  constexpr uint32_t lanes = 8;
  uint64_t i = (blockIdx.x * uint64_t{blockDim.x} + threadIdx.x) / lanes;
  if (i >= rows) return;
  uint64_t row = order ? order[i] : i;
  const std::byte* from = keys.data + keys.begin(row);
  uint64_t bytes = keys.begin(row + 1) - keys.begin(row);
  std::byte* to = out + (ends ? ends[i] : i * bytes);
  for (uint64_t at = threadIdx.x % lanes; at < bytes; at += lanes) to[at] = from[at];
}

// Rows `order` of a column, or all `rows` where order is null, as a column of its own.
inline DevicePackedColumn pack_column(CudaSpace& space, const KeyColumn& keys,
                                      const uint32_t* order, uint64_t rows) {
  DevicePackedColumn packed;
  packed.view.size = rows;
  packed.view.fixed = keys.is_fixed();
  CudaArray<uint64_t> ends;
  uint64_t total = rows * keys.width;
  if (keys.is_fixed()) {
    packed.view.width = keys.width;
  } else {
    ends = space.buffer<uint64_t>(rows + 1);
    auto lengths = thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                                   RowLength{keys, order});
    space.set_zero(ends.data(), 8);
    thrust::inclusive_scan(space.policy(), lengths, lengths + static_cast<ptrdiff_t>(rows),
                           ends.data() + 1);
    space.copy_out(&total, ends.data() + rows, 8);
    GroupBytes group_bytes{ends.data(), rows};
    uint64_t groups = (rows >> PackedOffsets::group_bits) + 1;
    thrust::counting_iterator<uint64_t> first(0);
    uint64_t widest =
        rows == 0 ? 0
                  : thrust::transform_reduce(
                        space.policy(), first,
                        first + static_cast<ptrdiff_t>((rows + 127) >> PackedOffsets::group_bits),
                        group_bytes, uint64_t{0}, thrust::maximum<uint64_t>());
    uint32_t width = widest <= 0xFFFF ? 2 : 4;  // 128 keys of 65,535 bytes at most
    packed.bases = space.buffer<uint64_t>(groups);
    packed.deltas = space.buffer<std::byte>((rows + 1) * width);
    if (width == 2) {
      space.each(rows + 1,
                 PackOffsets<uint16_t>{ends.data(), packed.bases.data(),
                                       reinterpret_cast<uint16_t*>(packed.deltas.data())});
    } else {
      space.each(rows + 1,
                 PackOffsets<uint32_t>{ends.data(), packed.bases.data(),
                                       reinterpret_cast<uint32_t*>(packed.deltas.data())});
    }
    packed.view.offsets = {packed.bases.data(), packed.deltas.data(), width};
  }
  packed.data = space.buffer<std::byte>(total);
  packed.data.clear_padding();
  packed.view.data = packed.data.data();
  packed.view.data_bytes = total;
  if (total > 0) {
    gather_rows<<<blocks_for(rows * 8), block_threads, 0, space.stream()>>>(
        keys, order, ends.data(), rows, packed.data.data());
    cuda_check(cudaGetLastError(), "gather keys");
  }
  return packed;
}

}  // namespace stride
