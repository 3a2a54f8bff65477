#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "gpu/device/cuda_columns.cuh"
#include "gpu/device/cuda_space.cuh"
#include "gpu/keys/key_sample.h"
#include "gpu/sort/cuda_sort.cuh"
#include "gpu/tree/cuda_index.h"
#include "gpu/tree/cuda_search.cuh"
#include "gpu/tree/directory.h"
#include "gpu/tree/least_behind.h"
#include "gpu/tree/tree_build.h"
#include "gpu/tree/tree_build_host.h"

namespace stride {

namespace {

// What a device keeps beside an index.
struct DeviceRows {
  DevicePackedColumn values;
  bool has_values = false;
  CudaArray<uint8_t> hidden;
};

class CudaIndex final : public CudaResident {
 public:
  CudaIndex(const CudaContext& context, DevicePackedColumn keys, CudaArray<std::byte> image,
            uint64_t image_bytes, DeviceRows rows, cudaStream_t stream)
      : context_(context),
        keys_(std::move(keys)),
        image_(std::move(image)),
        image_bytes_(image_bytes),
        rows_(std::move(rows)) {
    CudaSpace space(context.device, stream);
    index_.values = rows_.values.view;
    index_.has_values = rows_.has_values;
    index_.hidden = rows_.hidden.data();
    keys_.data.clear_padding();
    index_.keys = keys_.view;
    index_.has_tree = image_bytes > 0;
    if (index_.has_tree) {
      constexpr uint64_t head_bytes = sizeof(TreeHeader) + max_tree_levels * sizeof(TreeLevel);
      alignas(8) std::byte head[head_bytes];
      space.copy_out(head, image_.data(), std::min<uint64_t>(head_bytes, image_bytes));
      index_.tree = TreeRef(head, image_.data());
      if (index_.tree.levels > 1) {
        make_entries(space, reinterpret_cast<const TreeLevel*>(head + sizeof(TreeHeader)));
      } else if (keys_.view.size > 0) {
        make_directory(space);
      }
    }
    if (!are_numbers(index_.keys, 8) && !are_numbers(index_.keys, 4)) make_tails(space);
    on_device_ = space.buffer<DeviceIndex>(1);
    space.copy_in(on_device_.data(), &index_, sizeof index_);
    device_copy_ = on_device_.data();
    cuda_check(cudaStreamSynchronize(stream), "make an index resident");
    // Freed later, when the stream may belong to another call.
    keys_.outlive_stream();
    image_.outlive_stream();
    directory_.outlive_stream();
    entries_.outlive_stream();
    tails_.outlive_stream();
    on_device_.outlive_stream();
    rows_.values.outlive_stream();
    rows_.hidden.outlive_stream();
  }
  // The arrays are freed on the home stream.
  ~CudaIndex() override { uses_.hold_back(context_.device.home_stream()); }

  void used_on(cudaStream_t stream) const override { uses_.add(stream); }

  IndexView view() const override {
    IndexView view;
    view.keys = keys_.view;
    view.tree = {image_.data(), image_bytes_};
    view.resident = this;
    return view;
  }
  Status copy_image(std::vector<std::byte>* image) const override {
    return cuda_guarded([&] {
      CudaStream stream(context_.device);
      image->resize(image_bytes_);
      context_.transfer.to_host(image->data(), image_.data(), image_bytes_, stream);
      return Status();
    });
  }
  Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const override;
  uint64_t memory_bytes() const override {
    uint64_t keys = keys_.data.size() ? keys_.bytes() : keys_.view.row_bytes();
    return keys + image_.bytes() + directory_.bytes() + entries_.bytes() + tails_.bytes() +
           on_device_.bytes() + rows_.values.bytes() + rows_.hidden.bytes();
  }

 private:
  void make_directory(CudaSpace& space) {
    uint32_t root_bits = index_.tree.level[0].stride;
    index_.directory_bits = directory_bits_for(index_.keys.size);
    uint64_t starts = (uint64_t{1} << index_.directory_bits) + 1;
    if (!try_buffer(space, starts, &directory_)) return;
    if (index_.directory_bits <= root_bits) {
      thin_out<<<blocks_for(starts), block_threads, 0, space.stream()>>>(
          index_.tree.level[0].starts, root_bits - index_.directory_bits, starts,
          directory_.data());
    } else {
      auto size = static_cast<uint32_t>(index_.keys.size);
      cuda_check(
          cudaMemsetAsync(directory_.data(), 0xFF, starts * sizeof(uint32_t), space.stream()),
          "make a directory");
      with_keys(index_.keys, [&](const auto& keys) {
        mark_directory<<<blocks_for(uint64_t{size} + 1), block_threads, 0, space.stream()>>>(
            keys, size, index_.tree.prefix_bits, index_.directory_bits, directory_.data());
      });
      take_least_behind(space.policy(), directory_.data(), starts);
    }
    cuda_check(cudaGetLastError(), "make a directory");
    index_.directory = directory_.data();
  }

  void make_entries(CudaSpace& space, const TreeLevel* shapes) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < index_.tree.levels; ++i) count += shapes[i].starts;
    if (!device_keeps_entries(static_cast<double>(count), index_.keys.size)) return;
    if (!try_buffer(space, count, &entries_)) return;
    DeviceEntry* next = entries_.data();
    for (uint32_t i = 0; i < index_.tree.levels; ++i) {
      const LevelRef& level = index_.tree.level[i];
      const uint32_t* depths =
          i + 1 < index_.tree.levels ? index_.tree.level[i + 1].depths : nullptr;
      fill_entries<<<blocks_for(shapes[i].starts), block_threads, 0, space.stream()>>>(
          level, shapes[i].starts, index_.tree.leaf_capacity, depths, next);
      index_.level[i] = {level.words, next, level.stride, level.kind};
      next += shapes[i].starts;
    }
    cuda_check(cudaGetLastError(), "take the entries of a tree");
    index_.has_entries = true;
  }

  // What only speeds searches up is left out where there is no room for it.
  template <class T>
  static bool try_buffer(CudaSpace& space, uint64_t n, CudaArray<T>* array) {
    try {
      *array = space.buffer<T>(n);
      return true;
    } catch (const CudaFailure& failure) {
      if (failure.status().code() != StatusCode::resource_exhausted) throw;
      return false;
    }
  }

  void make_tails(CudaSpace& space) {
    if (index_.keys.size == 0 || !try_buffer(space, index_.keys.size, &tails_)) return;
    fill_tails<<<blocks_for(index_.keys.size), block_threads, 0, space.stream()>>>(index_,
                                                                                   tails_.data());
    cuda_check(cudaGetLastError(), "take the tails of keys");
    tails_.clear_padding();
    index_.tails = tails_.data();
  }

  const CudaContext context_;
  DevicePackedColumn keys_;
  CudaArray<std::byte> image_;
  uint64_t image_bytes_;
  CudaArray<uint32_t> directory_;
  CudaArray<DeviceEntry> entries_;
  CudaArray<uint64_t> tails_;
  CudaArray<DeviceIndex> on_device_;
  DeviceRows rows_;
  mutable StreamUses uses_;
};

uint64_t bases_of(const PackedColumn& keys) { return (keys.size >> PackedOffsets::group_bits) + 1; }

DevicePackedColumn upload(CudaTransfer& transfer, CudaSpace& space, const PackedColumn& keys) {
  DevicePackedColumn column;
  column.view = keys;
  uint64_t bytes = keys.row_bytes();
  column.data = space.buffer<std::byte>(bytes);
  column.data.clear_padding();
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

Status build_image(CudaSpace& space, const PackedColumn& keys, const ChooseStrides& choose,
                   const TreeOptions& options, CudaArray<std::byte>* image, uint64_t* bytes) {
  STRIDE_TRY(options.check());
  STRIDE_TRY(check_key_count(keys.size));
  Status status = with_keys(keys, [&](const auto& typed) {
    using Keys = std::decay_t<decltype(typed)>;
    TreeOptions planned = options;
    if (options.strides.empty()) {
      KeyStatistics statistics;
      sample_keys(space, keys, typed, SampleOptions(), &statistics);
      planned = choose(statistics, options);
    }
    TreeBuilder<CudaSpace, Keys> builder(space, typed, static_cast<uint32_t>(keys.size),
                                         keys.row_bytes(), planned);
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
    column.view.width = keys.width;
    column.view.size = wide ? sort_numbers(space, reinterpret_cast<const uint64_t*>(keys.data),
                                           keys.size, &column.data)
                            : sort_numbers(space, reinterpret_cast<const uint32_t*>(keys.data),
                                           keys.size, &column.data);
    column.view.data = column.data.data();
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
  return cuda_guarded([&] {
    CudaStream stream(context_.device);
    const PackedColumn& c = keys_.view;
    keys->resize(c.row_bytes());
    context_.transfer.to_host(keys->data(), c.data, keys->size(), stream);
    offsets->resize(c.size + 1);
    if (c.fixed) {
      for (uint64_t i = 0; i <= c.size; ++i) (*offsets)[i] = i * c.width;
      return Status();
    }
    std::vector<uint64_t> bases(bases_of(c));
    std::vector<std::byte> deltas((c.size + 1) * c.offsets.delta_width);
    context_.transfer.to_host(bases.data(), c.offsets.bases, bases.size() * 8, stream);
    context_.transfer.to_host(deltas.data(), c.offsets.deltas, deltas.size(), stream);
    PackedOffsets packed{bases.data(), deltas.data(), c.offsets.delta_width};
    for (uint64_t i = 0; i <= c.size; ++i) (*offsets)[i] = packed[i];
    return Status();
  });
}

namespace {

uint64_t stored_bytes(const PackedColumn& column) {
  if (column.fixed) return column.row_bytes();
  return column.row_bytes() + bases_of(column) * 8 + (column.size + 1) * column.offsets.delta_width;
}

// About: what is derived from keys and tree may take less.
uint64_t device_bytes_of(const IndexView& index, const IndexRows& rows) {
  uint64_t bytes = stored_bytes(index.keys) + index.tree.image_bytes;
  if (rows.values) bytes += stored_bytes(*rows.values);
  if (rows.hidden) bytes += index.keys.size;
  return bytes;
}

}  // namespace

std::shared_ptr<ResidentIndex> make_resident_cuda(const CudaContext& context,
                                                  const IndexView& index, const IndexRows& rows) {
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  // Before anything is copied, and with room left for the batches that are going to be searched.
  context.device.require(device_bytes_of(index, rows) + context.device.reserve());
  DevicePackedColumn keys = upload(context.transfer, space, index.keys);
  uint64_t bytes = index.tree.image ? index.tree.image_bytes : 0;
  CudaArray<std::byte> image = space.buffer<std::byte>(bytes);
  context.transfer.to_device(image.data(), index.tree.image, bytes, stream);
  DeviceRows beside;
  if (rows.hidden) {
    beside.hidden = space.buffer<uint8_t>(index.keys.size);
    context.transfer.to_device(beside.hidden.data(), rows.hidden, index.keys.size, stream);
  }
  if (rows.values) {
    beside.values = upload(context.transfer, space, *rows.values);
    beside.has_values = true;
  }
  return std::make_shared<CudaIndex>(context, std::move(keys), std::move(image), bytes,
                                     std::move(beside), stream);
}

Result<std::shared_ptr<ResidentIndex>> build_index_cuda(const CudaContext& context,
                                                        const KeyColumn& keys, KeyOrder order,
                                                        const ChooseStrides& choose,
                                                        const TreeOptions& options) {
  STRIDE_TRY(options.check());
  STRIDE_TRY(check_key_count(keys.size));
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  DeviceColumn source = copy_to_device(context.transfer, space, keys);
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
  STRIDE_TRY(build_image(space, column.view, choose, options, &image, &bytes));
  return std::shared_ptr<ResidentIndex>(std::make_shared<CudaIndex>(
      context, std::move(column), std::move(image), bytes, DeviceRows(), stream));
}

Status build_tree_cuda(const CudaContext& context, const PackedColumn& keys,
                       const ChooseStrides& choose, const TreeOptions& options,
                       std::vector<std::byte>* image) {
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  DevicePackedColumn column = upload(context.transfer, space, keys);
  CudaArray<std::byte> built;
  uint64_t bytes = 0;
  STRIDE_TRY(build_image(space, column.view, choose, options, &built, &bytes));
  image->resize(bytes);
  context.transfer.to_host(image->data(), built.data(), bytes, stream);
  return {};
}

void measure_keys_cuda(const CudaContext& context, const PackedColumn& keys,
                       const SampleOptions& options, KeyStatistics* statistics) {
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  with_keys(keys, [&](const auto& typed) { sample_keys(space, keys, typed, options, statistics); });
}

}  // namespace stride
