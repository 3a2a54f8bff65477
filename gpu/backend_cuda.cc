#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/cuda_device.h"
#include "gpu/cuda_index.h"
#include "gpu/cuda_pipeline.h"
#include "gpu/cuda_transfer.h"
#include "gpu/index_host.h"

namespace stride {

namespace {

class CudaMemory final : public BackendMemory {
 public:
  CudaMemory(CudaDevice& device, uint64_t bytes) {
    CudaStream stream(device);
    memory_ = CudaArray<std::byte>(device, stream, bytes);
    memory_.clear_padding();
    stream.wait();
    memory_.settle();
    data_ = memory_.data();
    size_ = bytes;
  }

 private:
  CudaArray<std::byte> memory_;
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options)
      : host_(Backend::host(options.host_threads)),
        device_(options.device, options.memory_limit),
        transfer_(device_, *host_) {
    check_kernels();
  }

  std::string name() const override {
    return "cuda:" + std::to_string(device_.number()) + " (" + device_.model() + ")";
  }
  unsigned threads() const override { return host_->threads(); }
  bool has_device() const override { return true; }

  // Staged chunks are in host memory, and there the sort runs.
  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    return host_->sort(chunks, sorted);
  }

  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    Status status = cuda_guarded([&] { return build_tree_cuda(context(), keys, options, image); });
    if (status.code() != StatusCode::resource_exhausted) return status;
    return host_->build_tree(keys, options, image);
  }

  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return search(
        indexes, queries, out, [&] { return find_here(indexes, queries, out); },
        [&](const KeyColumn& there, std::span<Location> room) {
          return host_->find(indexes, there, room);
        });
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return search_one(index, CudaSearch::find_ranks, &Backend::find_ranks, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_one(index, CudaSearch::lower_bound, &Backend::lower_bound, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_one(index, CudaSearch::upper_bound, &Backend::upper_bound, queries, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return search(
        {&index, 1}, queries, out,
        [&] {
          return in_chunks(queries, out, [&](const KeyColumn& chunk, void* room, cudaStream_t on) {
            find_prefixes_cuda(*index.resident, chunk, static_cast<RankInterval*>(room), on);
          });
        },
        [&](const KeyColumn& there, std::span<RankInterval> room) {
          return host_->prefix_interval(index, there, room);
        });
  }

  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index) override {
    return cuda_guarded([&]() -> Result<std::shared_ptr<ResidentIndex>> {
      STRIDE_TRY(check_index(index));
      return make_resident_cuda(context(), index);
    });
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    auto built = cuda_guarded([&] { return build_index_cuda(context(), keys, order, options); });
    if (!built.ok() && built.status().code() == StatusCode::resource_exhausted &&
        !lies_here(keys)) {
      return host_->build_index(keys, order, options);
    }
    return built;
  }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      return std::unique_ptr<BackendMemory>(std::make_unique<CudaMemory>(device_, bytes));
    });
  }

  Status copy(void* to, const void* from, uint64_t bytes) override {
    if (bytes == 0) return {};
    bool to_here = device_.owns(to), from_here = device_.owns(from);
    if (!to_here && !from_here) return host_->copy(to, from, bytes);
    return cuda_guarded([&] {
      CudaStream stream(device_);
      if (to_here && from_here) {
        cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
        stream.wait();
      } else if (to_here) {
        transfer_.to_device(to, from, bytes, stream);
      } else {
        transfer_.to_host(to, from, bytes, stream);
      }
      return Status();
    });
  }

  Status measure_limits(uint64_t table_bytes, BackendLimits* limits) override {
    return cuda_guarded([&] {
      *limits = {};
      measure_memory_cuda(device_, std::max<uint64_t>(table_bytes, 1 << 20), limits);
      return Status();
    });
  }

  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    host_->parallel_for(n, grain, body);
  }

 private:
  CudaContext context() { return {device_, transfer_}; }

  bool lies_here(const KeyColumn& keys) const {
    return keys.is_fixed() ? device_.owns(keys.data) : device_.owns(keys.offsets);
  }
  static bool is_resident(const IndexView& index) {
    return index.resident != nullptr && index.resident->on_device();
  }
  // Whether the host can search an index.
  Status check_host(const IndexView& index) const {
    if (!is_resident(index)) return {};
    if (!device_.owns(index.keys.data) && !device_.owns(index.tree.image)) return {};
    return Status::invalid("a search that the host has to do, of an index on the device alone")
        .with_remedy("make all indexes of a search resident, or none");
  }

  // Runs `here` where all indexes are resident, and where they are not, or the device's memory does
  // not suffice, `host`, with queries and results in host memory.
  template <class T, class Here, class Host>
  Status search(std::span<const IndexView> indexes, const KeyColumn& queries, std::span<T> out,
                const Here& here, const Host& host) {
    if (out.size() != queries.size) {
      return Status::invalid("room for " + std::to_string(out.size()) + " results of " +
                             std::to_string(queries.size) + " queries")
          .with_remedy("give one result for each query");
    }
    bool all = !indexes.empty();
    for (const IndexView& index : indexes) all &= is_resident(index);
    Status status;
    if (all) {
      status = cuda_guarded(here);
      if (status.code() != StatusCode::resource_exhausted) return status;
    }
    for (const IndexView& index : indexes) {
      if (Status can = check_host(index); !can.ok()) return all ? status : can;
    }
    return guarded([&] { return search_on_host(queries, out, host); });
  }

  template <class T, class Host>
  Status search_on_host(KeyColumn queries, std::span<T> out, const Host& host) {
    std::vector<std::byte> keys;
    std::vector<uint64_t> offsets;
    if (queries.size > 0 && lies_here(queries)) STRIDE_TRY(bring_back(&queries, &keys, &offsets));
    if (out.empty() || !device_.owns(out.data())) return host(queries, out);
    std::vector<T> results(out.size());
    STRIDE_TRY(host(queries, std::span<T>(results)));
    return copy(out.data(), results.data(), out.size_bytes());
  }

  // A column of the device's, in host memory.
  Status bring_back(KeyColumn* column, std::vector<std::byte>* keys,
                    std::vector<uint64_t>* offsets) {
    uint64_t first = 0, end = column->size * column->width;
    if (!column->is_fixed()) {
      offsets->resize(column->size + 1);
      STRIDE_TRY(copy(offsets->data(), column->offsets, offsets->size() * sizeof(uint64_t)));
      first = offsets->front();
      end = offsets->back();
      column->offsets = offsets->data();
    }
    keys->resize(end - first);
    STRIDE_TRY(copy(keys->data(), column->data + first, keys->size()));
    column->data = keys->data() - first;
    return {};
  }

  template <class T>
  Status in_chunks(const KeyColumn& queries, std::span<T> out, const StartSearch& start) {
    search_in_chunks(transfer_, queries, out.data(), sizeof(T), start);
    return {};
  }

  using HostSearch = Status (Backend::*)(const IndexView&, const KeyColumn&, std::span<uint32_t>);

  Status search_one(const IndexView& index, CudaSearch op, HostSearch on_host,
                    const KeyColumn& queries, std::span<uint32_t> out) {
    return search(
        {&index, 1}, queries, out,
        [&] {
          return in_chunks(queries, out, [&](const KeyColumn& chunk, void* room, cudaStream_t on) {
            search_cuda(*index.resident, op, chunk, static_cast<uint32_t*>(room), on);
          });
        },
        [&](const KeyColumn& there, std::span<uint32_t> room) {
          return ((*host_).*on_host)(index, there, room);
        });
  }

  Status find_here(std::span<const IndexView> indexes, const KeyColumn& queries,
                   std::span<Location> out) {
    std::vector<const DeviceIndex*> on_device;
    uint32_t width = number_width(*indexes[0].resident);
    for (const IndexView& index : indexes) {
      on_device.push_back(device_index(*index.resident));
      if (number_width(*index.resident) != width) width = 0;
    }
    CudaStream stream(device_);
    CudaArray<const DeviceIndex*> list(device_, stream, on_device.size());
    cuda_check(cudaMemcpyAsync(list.data(), on_device.data(), on_device.size() * sizeof(void*),
                               cudaMemcpyHostToDevice, stream),
               "copy the list of indexes");
    stream.wait();
    auto count = static_cast<uint32_t>(on_device.size());
    return in_chunks(queries, out, [&](const KeyColumn& chunk, void* room, cudaStream_t on) {
      find_in_cuda(list.data(), count, width, chunk, static_cast<Location*>(room), on);
    });
  }

  std::unique_ptr<Backend> host_;
  CudaDevice device_;
  CudaTransfer transfer_;
};

}  // namespace

Result<std::unique_ptr<Backend>> Backend::cuda(const CudaOptions& options) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<Backend>> {
    return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(options));
  });
}

}  // namespace stride
