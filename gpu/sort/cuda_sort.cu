#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/sequence.h>

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <vector>

#include "gpu/device/cuda_columns.cuh"
#include "gpu/device/cuda_space.cuh"
#include "gpu/sort/cuda_sort.cuh"
#include "gpu/sort/cuda_sort.h"
#include "gpu/sort/host_sort.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

namespace {

// Whether number i stays: the last of equal ones. cub::DeviceSelect::Unique would keep the first.
template <class Stored>
struct LastOfEqual {
  const Stored* numbers;
  uint64_t count;
  STRIDE_HD bool operator()(uint64_t i) const {
    return i + 1 == count || numbers[i] != numbers[i + 1];
  }
};

// The id of a row, from its number among all rows.
struct RowIds {
  const uint32_t* starts;   // of each chunk that is not empty
  const uint32_t* numbers;  // its number among all chunks
  uint32_t chunks;

  STRIDE_HD uint32_t operator()(uint32_t row) const {
    uint32_t first = 0, count = chunks;
    while (count > 1) {  // the last chunk that does not start after the row
      uint32_t half = count / 2;
      first = starts[first + half] <= row ? first + half : first;
      count -= half;
    }
    return numbers[first] << row_bits | (row - starts[first]);
  }
};

struct Chunks {
  std::vector<KeyColumn> columns;  // none empty
  std::vector<uint32_t> numbers;   // of each, among those that were given
  std::vector<uint32_t> starts;
  uint64_t rows = 0;
  bool ids_are_numbers = true;  // of rows: all chunks but the last are full
  uint32_t width = 0;           // of all keys; 0: they differ

  explicit Chunks(std::span<const KeyColumn> given) {
    bool one_width = true;
    for (uint32_t i = 0; i < given.size(); ++i) {
      if (given[i].size == 0) continue;
      ids_are_numbers = ids_are_numbers && rows == uint64_t{i} << row_bits;
      columns.push_back(given[i]);
      numbers.push_back(i);
      starts.push_back(static_cast<uint32_t>(rows));
      rows += given[i].size;
      one_width = one_width && given[i].is_fixed() && given[i].width == columns[0].width;
    }
    if (one_width && !columns.empty()) width = columns[0].width;
  }
};

// All rows in one column on the device.
DeviceColumn copy_chunks_to_device(CudaTransfer& transfer, CudaSpace& space, const Chunks& chunks) {
  DeviceColumn all;
  std::vector<Bytes> parts;
  uint64_t bytes = 0;
  for (const KeyColumn& chunk : chunks.columns) {
    parts.push_back({chunk.data + chunk.begin(0), chunk.bytes()});
    bytes += chunk.bytes();
  }
  all.data = space.buffer<std::byte>(bytes);
  all.data.clear_padding();
  transfer.to_device(all.data.data(), parts, space.stream());
  all.view = KeyColumn::fixed(all.data.data(), chunks.width, chunks.rows);
  if (chunks.width > 0) return all;
  BulkVector<uint64_t> offsets(chunks.rows + 1);
  uint64_t row = 0, at = 0;
  for (const KeyColumn& chunk : chunks.columns) {
    for (uint64_t i = 0; i < chunk.size; ++i)
      offsets[row + i] = at + chunk.begin(i) - chunk.begin(0);
    row += chunk.size;
    at += chunk.bytes();
  }
  offsets[row] = at;
  all.offsets = space.buffer<uint64_t>(offsets.size());
  transfer.to_device(all.offsets.data(), offsets.data(), offsets.size() * 8, space.stream());
  all.view = KeyColumn::variable(all.data.data(), all.offsets.data(), chunks.rows);
  return all;
}

// The order of 8-byte keys, and the keys in it. Returns how many are left.
uint64_t sort_pairs(CudaSpace& space, CudaArray<std::byte>* keys, uint64_t count,
                    CudaArray<uint32_t>* order) {
  CudaArray<std::byte> other_keys = space.buffer<std::byte>(count * 8);
  CudaArray<uint32_t> other_order = space.buffer<uint32_t>(count);
  *order = space.buffer<uint32_t>(count);
  auto* first = reinterpret_cast<uint64_t*>(keys->data());
  auto* second = reinterpret_cast<uint64_t*>(other_keys.data());
  space.each(count, SwapBytes<uint64_t>{first, first});
  thrust::sequence(space.policy(), order->data(), order->data() + count);
  cub::DoubleBuffer<uint64_t> numbers(first, second);
  cub::DoubleBuffer<uint32_t> rows(order->data(), other_order.data());
  with_scratch(space, "sort keys", [&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, numbers, rows, count, 0, 64,
                                           space.stream());
  });
  auto stays = thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                               LastOfEqual<uint64_t>{numbers.Current(), count});
  auto swapped = thrust::make_transform_iterator(static_cast<const uint64_t*>(numbers.Current()),
                                                 Swapped<uint64_t>());
  CudaArray<uint64_t> kept = space.buffer<uint64_t>(1);
  with_scratch(space, "drop equal keys", [&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, swapped, stays, numbers.Alternate(),
                                      kept.data(), count, space.stream());
  });
  with_scratch(space, "drop equal keys", [&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, rows.Current(), stays, rows.Alternate(),
                                      kept.data(), count, space.stream());
  });
  uint64_t left = 0;
  space.copy_out(&left, kept.data(), 8);
  if (numbers.Alternate() != first) std::swap(*keys, other_keys);
  if (rows.Alternate() != order->data()) std::swap(*order, other_order);
  return left;
}

struct ToRowIds {
  RowIds ids;
  uint32_t* order;
  STRIDE_HD void operator()(uint64_t i) const { order[i] = ids(order[i]); }
};

}  // namespace

Status sort_chunks_cuda(const CudaContext& context, std::span<const KeyColumn> given,
                        Sorted* sorted) {
  STRIDE_TRY(check_chunks(given));
  Chunks chunks(given);
  *sorted = {};
  if (chunks.rows == 0) return {};
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  DeviceColumn keys = copy_chunks_to_device(context.transfer, space, chunks);
  CudaArray<uint32_t> order;
  uint64_t left;
  if (chunks.width == 8) {
    left = sort_pairs(space, &keys.data, chunks.rows, &order);
  } else {
    order = space.buffer<uint32_t>(chunks.rows);
    left = sort_rows(space, keys.view, order.data());
  }
  if (!chunks.ids_are_numbers) {
    CudaArray<uint32_t> starts = space.buffer<uint32_t>(chunks.starts.size());
    CudaArray<uint32_t> numbers = space.buffer<uint32_t>(chunks.numbers.size());
    space.copy_in(starts.data(), chunks.starts.data(), chunks.starts.size() * 4);
    space.copy_in(numbers.data(), chunks.numbers.data(), chunks.numbers.size() * 4);
    RowIds ids{starts.data(), numbers.data(), static_cast<uint32_t>(chunks.starts.size())};
    space.each(left, ToRowIds{ids, order.data()});
  }
  sorted->order.resize(left);
  context.transfer.to_host(sorted->order.data(), order.data(), left * 4, stream);
  if (chunks.width == 8) {
    sorted->keys8.resize(left);
    context.transfer.to_host(sorted->keys8.data(), keys.data.data(), left * 8, stream);
  }
  return {};
}

}  // namespace stride
