#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "gpu/cuda_columns.cuh"
#include "gpu/cuda_index.h"
#include "gpu/cuda_search.cuh"
#include "gpu/cuda_sort.cuh"
#include "gpu/cuda_space.cuh"
#include "gpu/tree_build.h"

namespace stride {

namespace {

// A directory entry for about as many keys: then the directory of 100M keys, 8 MiB, stays in the
// second-level cache, and the guess inside a leaf is seldom off by more than a sector.
constexpr uint64_t keys_per_entry = 24;
constexpr uint32_t least_directory_bits = 10;
constexpr uint32_t most_directory_bits = 28;
// A small directory costs nothing, and narrow leaves save accesses.
constexpr uint32_t free_directory_bits = 19;

uint32_t directory_bits_for(uint64_t keys) {
  auto wanted = static_cast<uint32_t>(std::bit_width(keys / keys_per_entry | 1)) - 1;
  auto narrowest = static_cast<uint32_t>(std::bit_width(keys | 1));
  return std::clamp(wanted,
                    std::min(free_directory_bits, std::max(narrowest, least_directory_bits)),
                    most_directory_bits);
}

class CudaIndex final : public ResidentIndex {
 public:
  CudaIndex(const CudaContext& context, DevicePackedColumn keys, CudaArray<std::byte> image,
            uint64_t image_bytes, cudaStream_t stream)
      : context_(context),
        keys_(std::move(keys)),
        image_(std::move(image)),
        image_bytes_(image_bytes) {
    CudaSpace space(context.device, stream);
    index_.keys = keys_.view;
    index_.has_tree = image_bytes > 0;
    index_.directory = nullptr;
    index_.directory_bits = 0;
    if (index_.has_tree) {
      constexpr uint64_t head_bytes = sizeof(TreeHeader) + max_tree_levels * sizeof(TreeLevel);
      alignas(8) std::byte head[head_bytes];
      space.copy_out(head, image_.data(), std::min<uint64_t>(head_bytes, image_bytes));
      index_.tree = TreeRef(head, image_.data());
      if (index_.tree.levels == 1 && keys_.view.size > 0) make_directory(space);
    }
    on_device_ = space.buffer<DeviceIndex>(1);
    space.copy_in(on_device_.data(), &index_, sizeof index_);
    cuda_check(cudaStreamSynchronize(stream), "make an index resident");
    // Freed later, when the stream may belong to another call.
    keys_.settle(nullptr);
    image_.settle(nullptr);
    directory_.settle(nullptr);
    on_device_.settle(nullptr);
  }

  IndexView view() const override {
    IndexView view;
    view.keys = keys_.view;
    view.tree = {image_.data(), image_bytes_};
    view.resident = this;
    return view;
  }
  bool on_device() const override { return true; }
  Status copy_image(std::vector<std::byte>* image) const override {
    try {
      CudaStream stream(context_.device);
      image->resize(image_bytes_);
      context_.transfer.to_host(image->data(), image_.data(), image_bytes_, stream);
    } catch (const CudaFailure& failure) {
      return failure.status();
    }
    return {};
  }
  Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const override;
  uint64_t memory_bytes() const override {
    uint64_t keys = keys_.data.size() ? keys_.bytes() : keys_.view.row_bytes();
    return keys + image_.bytes() + directory_.bytes() + on_device_.bytes();
  }

  const DeviceIndex& index() const { return index_; }
  const DeviceIndex* device_copy() const { return on_device_.data(); }

 private:
  void make_directory(CudaSpace& space) {
    bool wide = are_numbers(index_.keys, 8), narrow = are_numbers(index_.keys, 4);
    if (!wide && !narrow) return;
    index_.directory_bits = directory_bits_for(index_.keys.size);
    directory_ = space.buffer<uint32_t>((uint64_t{1} << index_.directory_bits) + 1);
    auto fill = wide ? fill_directory<8> : fill_directory<4>;
    fill<<<blocks_for(index_.keys.size + 1), block_threads, 0, space.stream()>>>(
        index_.keys, index_.tree.prefix_bits, index_.directory_bits, directory_.data());
    cuda_check(cudaGetLastError(), "make a directory");
    index_.directory = directory_.data();
  }

  const CudaContext context_;
  DevicePackedColumn keys_;
  CudaArray<std::byte> image_;
  uint64_t image_bytes_;
  CudaArray<uint32_t> directory_;
  CudaArray<DeviceIndex> on_device_;
  DeviceIndex index_{};
};

const CudaIndex& as_cuda(const ResidentIndex& index) {
  return static_cast<const CudaIndex&>(index);
}

// The bytes of a stored column's arrays.
uint64_t bases_of(const PackedColumn& keys) { return (keys.size >> PackedOffsets::group_bits) + 1; }

DevicePackedColumn upload(CudaTransfer& transfer, CudaSpace& space, const PackedColumn& keys) {
  DevicePackedColumn column;
  column.view = keys;
  uint64_t bytes = keys.row_bytes();
  column.data = space.buffer<std::byte>(bytes);
  transfer.to_device(column.data.data(), keys.data, bytes, space.stream());
  column.view.data = column.data.data();
  column.view.data_bytes = bytes;
  if (keys.fixed) return column;
  column.bases = space.buffer<uint64_t>(bases_of(keys));
  transfer.to_device(column.bases.data(), keys.offsets.bases, bases_of(keys) * 8, space.stream());
  uint64_t deltas = (keys.size + 1) * keys.offsets.delta_width;
  column.deltas = space.buffer<std::byte>(deltas);
  transfer.to_device(column.deltas.data(), keys.offsets.deltas, deltas, space.stream());
  column.view.offsets.bases = column.bases.data();
  column.view.offsets.deltas = column.deltas.data();
  return column;
}

Status build_image(CudaSpace& space, const PackedColumn& keys, const TreeOptions& options,
                   CudaArray<std::byte>* image, uint64_t* bytes) {
  STRIDE_TRY(options.check());
  if (keys.size > max_index_keys) {
    return Status::invalid("a tree over " + std::to_string(keys.size) + " keys: at most " +
                           std::to_string(max_index_keys))
        .with_remedy("split the keys into several segments");
  }
  Status status = with_keys(keys, [&](const auto& typed) {
    using Keys = std::decay_t<decltype(typed)>;
    TreeBuilder<CudaSpace, Keys> builder(space, typed, static_cast<uint32_t>(keys.size),
                                         keys.row_bytes(), options);
    return builder.build(image);
  });
  *bytes = image->size();
  return status;
}

// The sorted column of any keys, without duplicates.
DevicePackedColumn sort_column(CudaSpace& space, const KeyColumn& keys) {
  DevicePackedColumn column;
  bool wide = keys.is_fixed() && keys.width == 8, narrow = keys.is_fixed() && keys.width == 4;
  bool aligned = reinterpret_cast<uintptr_t>(keys.data) % 8 == 0;
  if ((wide || narrow) && aligned) {
    column.data = space.buffer<std::byte>(keys.size * keys.width);
    column.view.width = keys.width;
    column.view.data = column.data.data();
    column.view.size =
        wide ? sort_numbers(space, reinterpret_cast<const uint64_t*>(keys.data), keys.size,
                            reinterpret_cast<uint64_t*>(column.data.data()))
             : sort_numbers(space, reinterpret_cast<const uint32_t*>(keys.data), keys.size,
                            reinterpret_cast<uint32_t*>(column.data.data()));
    column.view.data_bytes = column.view.size * keys.width;
    return column;
  }
  CudaArray<uint32_t> order = space.buffer<uint32_t>(keys.size);
  uint64_t rows = sort_rows(space, keys, order.data());
  return pack_column(space, keys, order.data(), rows);
}

DevicePackedColumn borrow(const KeyColumn& keys) {
  DevicePackedColumn column;
  column.view.data = keys.data;
  column.view.data_bytes = keys.bytes();
  column.view.size = keys.size;
  column.view.width = keys.width;
  return column;
}

}  // namespace

Status CudaIndex::copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const {
  try {
    CudaStream stream(context_.device);
    const PackedColumn& c = keys_.view;
    keys->resize(c.row_bytes());
    context_.transfer.to_host(keys->data(), c.data, keys->size(), stream);
    offsets->resize(c.size + 1);
    if (c.fixed) {
      for (uint64_t i = 0; i <= c.size; ++i) (*offsets)[i] = i * c.width;
      return {};
    }
    std::vector<uint64_t> bases(bases_of(c));
    std::vector<std::byte> deltas((c.size + 1) * c.offsets.delta_width);
    context_.transfer.to_host(bases.data(), c.offsets.bases, bases.size() * 8, stream);
    context_.transfer.to_host(deltas.data(), c.offsets.deltas, deltas.size(), stream);
    PackedOffsets packed{bases.data(), deltas.data(), c.offsets.delta_width};
    for (uint64_t i = 0; i <= c.size; ++i) (*offsets)[i] = packed[i];
  } catch (const CudaFailure& failure) {
    return failure.status();
  }
  return {};
}

std::shared_ptr<ResidentIndex> make_resident_cuda(const CudaContext& context,
                                                  const IndexView& index) {
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  DevicePackedColumn keys = upload(context.transfer, space, index.keys);
  uint64_t bytes = index.tree.image ? index.tree.image_bytes : 0;
  CudaArray<std::byte> image = space.buffer<std::byte>(bytes);
  context.transfer.to_device(image.data(), index.tree.image, bytes, stream);
  return std::make_shared<CudaIndex>(context, std::move(keys), std::move(image), bytes, stream);
}

Result<std::shared_ptr<ResidentIndex>> build_index_cuda(const CudaContext& context,
                                                        const KeyColumn& keys, KeyOrder order,
                                                        const TreeOptions& options) {
  if (keys.size > max_index_keys) {
    return Status::invalid("an index of " + std::to_string(keys.size) + " keys: at most " +
                           std::to_string(max_index_keys));
  }
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  DeviceColumn source = bring(context.transfer, space, keys);
  DevicePackedColumn column;
  if (order == KeyOrder::any) {
    column = sort_column(space, source.view);
  } else if (source.data.size() == 0 && reads_whole_words(source.view)) {
    column = borrow(source.view);
  } else if (source.view.is_fixed() && source.data.size() > 0) {
    column = borrow(source.view);
    column.data = std::move(source.data);
  } else {
    column = pack_column(space, source.view, nullptr, source.view.size);
  }
  source = {};
  CudaArray<std::byte> image;
  uint64_t bytes = 0;
  STRIDE_TRY(build_image(space, column.view, options, &image, &bytes));
  return std::shared_ptr<ResidentIndex>(
      std::make_shared<CudaIndex>(context, std::move(column), std::move(image), bytes, stream));
}

Status build_tree_cuda(const CudaContext& context, const PackedColumn& keys,
                       const TreeOptions& options, std::vector<std::byte>* image) {
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  DevicePackedColumn column = upload(context.transfer, space, keys);
  CudaArray<std::byte> built;
  uint64_t bytes = 0;
  STRIDE_TRY(build_image(space, column.view, options, &built, &bytes));
  image->resize(bytes);
  context.transfer.to_host(image->data(), built.data(), bytes, stream);
  return {};
}

namespace {

template <SearchOp op>
void search(const DeviceIndex& index, const KeyColumn& queries, uint32_t* out,
            cudaStream_t stream) {
  uint32_t blocks = blocks_for(queries.size);
  if (are_numbers(index.keys, 8) && are_numbers(queries, 8)) {
    search_numbers<op, 8><<<blocks, block_threads, 0, stream>>>(
        index, reinterpret_cast<const uint64_t*>(queries.data), queries.size, out);
  } else if (are_numbers(index.keys, 4) && are_numbers(queries, 4)) {
    search_numbers<op, 4><<<blocks, block_threads, 0, stream>>>(
        index, reinterpret_cast<const uint32_t*>(queries.data), queries.size, out);
  } else {
    search_keys<op><<<blocks, block_threads, 0, stream>>>(index, queries, out);
  }
  cuda_check(cudaGetLastError(), "start a search");
}

}  // namespace

void search_cuda(const ResidentIndex& index, CudaSearch op, const KeyColumn& queries, uint32_t* out,
                 cudaStream_t stream) {
  if (queries.size == 0) return;
  const DeviceIndex& on = as_cuda(index).index();
  switch (op) {
    case CudaSearch::find_ranks:
      return search<SearchOp::find>(on, queries, out, stream);
    case CudaSearch::lower_bound:
      return search<SearchOp::lower_bound>(on, queries, out, stream);
    case CudaSearch::upper_bound:
      return search<SearchOp::upper_bound>(on, queries, out, stream);
  }
}

void find_prefixes_cuda(const ResidentIndex& index, const KeyColumn& queries, RankInterval* out,
                        cudaStream_t stream) {
  if (queries.size == 0) return;
  find_prefixes<<<blocks_for(queries.size), block_threads, 0, stream>>>(as_cuda(index).index(),
                                                                        queries, out);
  cuda_check(cudaGetLastError(), "start a search");
}

void find_in_cuda(const DeviceIndex* const* indexes, uint32_t count, uint32_t key_width,
                  const KeyColumn& queries, Location* out, cudaStream_t stream) {
  if (queries.size == 0) return;
  uint32_t blocks = blocks_for(queries.size);
  if (key_width == 8 && are_numbers(queries, 8)) {
    find_numbers_in<8><<<blocks, block_threads, 0, stream>>>(
        indexes, count, reinterpret_cast<const uint64_t*>(queries.data), queries.size, out);
  } else if (key_width == 4 && are_numbers(queries, 4)) {
    find_numbers_in<4><<<blocks, block_threads, 0, stream>>>(
        indexes, count, reinterpret_cast<const uint32_t*>(queries.data), queries.size, out);
  } else {
    find_keys_in<<<blocks, block_threads, 0, stream>>>(indexes, count, queries, out);
  }
  cuda_check(cudaGetLastError(), "start a search");
}

const DeviceIndex* device_index(const ResidentIndex& index) { return as_cuda(index).device_copy(); }

uint32_t number_width(const ResidentIndex& index) {
  const PackedColumn& keys = as_cuda(index).index().keys;
  return are_numbers(keys, 8) ? 8 : are_numbers(keys, 4) ? 4 : 0;
}

namespace {

__global__ void gather_sectors(const uint4* table, uint64_t sectors, uint64_t count,
                               uint32_t* out) {
  uint64_t i = this_thread();
  if (i >= count) return;
  uint64_t random = i * 0x9E3779B97F4A7C15ull;
  random = (random ^ random >> 32) * 0xD6E8FEB86659FD93ull;
  random = (random ^ random >> 32) * 0xD6E8FEB86659FD93ull;
  uint64_t at = __umul64hi(random, sectors);
  uint4 a = __ldg(table + 2 * at), b = __ldg(table + 2 * at + 1);
  uint32_t sum = a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
  if (sum == 0x12345678) out[0] = sum;  // so that the loads are not left out
}

__global__ void copy_words(const uint4* from, uint4* to, uint64_t count) {
  uint64_t i = this_thread();
  if (i < count) to[i] = from[i];
}

// The least of several times, in seconds.
template <class Work>
double fastest(cudaStream_t stream, const Work& work) {
  cudaEvent_t begin, end;
  cuda_check(cudaEventCreate(&begin), "make an event");
  cuda_check(cudaEventCreate(&end), "make an event");
  float least = 1e30f;
  for (int repeat = 0; repeat < 5; ++repeat) {
    cudaEventRecord(begin, stream);
    work();
    cudaEventRecord(end, stream);
    cuda_check(cudaEventSynchronize(end), "measure limits");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    least = std::min(least, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return least / 1e3;
}

}  // namespace

void measure_memory_cuda(CudaDevice& device, uint64_t table_bytes, BackendLimits* limits) {
  constexpr uint64_t gathers = 1 << 26, copied = 1 << 28;
  CudaStream stream(device);
  CudaSpace space(device, stream);
  CudaArray<std::byte> table = space.buffer<std::byte>(table_bytes);
  space.set_zero(table.data(), table_bytes);
  CudaArray<uint32_t> out = space.buffer<uint32_t>(1);
  const auto* words = reinterpret_cast<const uint4*>(table.data());
  double seconds = fastest(stream, [&] {
    gather_sectors<<<blocks_for(gathers), block_threads, 0, stream>>>(words, table_bytes / 32,
                                                                      gathers, out.data());
  });
  limits->gathers_per_second = gathers / seconds;
  CudaArray<std::byte> from = space.buffer<std::byte>(copied), to = space.buffer<std::byte>(copied);
  space.set_zero(from.data(), copied);
  seconds = fastest(stream, [&] {
    copy_words<<<blocks_for(copied / 16), block_threads, 0, stream>>>(
        reinterpret_cast<const uint4*>(from.data()), reinterpret_cast<uint4*>(to.data()),
        copied / 16);
  });
  limits->copy_bytes_per_second = 2.0 * copied / seconds;
  // One way over the bus, from and to pinned memory.
  uint64_t bus_bytes = 256 << 20;
  PinnedMemory pinned(bus_bytes);
  seconds = fastest(stream, [&] {
    cudaMemcpyAsync(to.data(), pinned.data(), bus_bytes, cudaMemcpyHostToDevice, stream);
  });
  limits->bus_in_bytes_per_second = bus_bytes / seconds;
  seconds = fastest(stream, [&] {
    cudaMemcpyAsync(pinned.data(), to.data(), bus_bytes, cudaMemcpyDeviceToHost, stream);
  });
  limits->bus_out_bytes_per_second = bus_bytes / seconds;
}

}  // namespace stride
