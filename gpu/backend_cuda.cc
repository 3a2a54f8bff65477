#include <algorithm>
#include <exception>
#include <new>
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

// Runs a call, and turns what it throws into a Status.
template <class Call>
auto guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const CudaFailure& failure) {
    return failure.status();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::resource_exhausted, "not enough memory for the batch")
        .with_remedy("use smaller batches or free some memory");
  } catch (const std::exception& error) {  // Thrust's
    return Status(StatusCode::io_error, std::string("CUDA: ") + error.what())
        .with_remedy("use the host backend");
  }
}

class CudaMemory final : public BackendMemory {
 public:
  CudaMemory(CudaDevice& device, uint64_t bytes) {
    CudaStream stream(device);
    memory_ = CudaArray<std::byte>(device, stream, bytes);
    stream.wait();
    memory_.settle(nullptr);
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
        transfer_(device_, *host_) {}

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
    Status status = guarded([&] { return build_tree_cuda(context(), keys, options, image); });
    if (status.code() != StatusCode::resource_exhausted) return status;
    return host_->build_tree(keys, options, image);
  }

  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    bool all = !indexes.empty();
    for (const IndexView& index : indexes) all &= is_here(index);
    if (!all) {
      for (const IndexView& index : indexes) STRIDE_TRY(check_host(index));
      return host_->find(indexes, queries, out);
    }
    STRIDE_TRY(check_sizes(queries, out.size()));
    Status status = guarded([&] { return find_here(indexes, queries, out); });
    return status;
  }

  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    if (is_here(index)) return search(index, CudaSearch::find_ranks, queries, out);
    return host_->find_ranks(index, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    if (is_here(index)) return search(index, CudaSearch::lower_bound, queries, out);
    return host_->lower_bound(index, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    if (is_here(index)) return search(index, CudaSearch::upper_bound, queries, out);
    return host_->upper_bound(index, queries, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    if (!is_here(index)) return host_->prefix_interval(index, queries, out);
    STRIDE_TRY(check_sizes(queries, out.size()));
    return guarded([&] {
      search_in_chunks(transfer_, queries, out.data(), sizeof(RankInterval),
                       [&](const KeyColumn& chunk, void* results, cudaStream_t stream) {
                         find_prefixes_cuda(*index.resident, chunk,
                                            static_cast<RankInterval*>(results), stream);
                       });
      return Status();
    });
  }

  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index) override {
    return guarded([&]() -> Result<std::shared_ptr<ResidentIndex>> {
      STRIDE_TRY(check_index(index));
      return make_resident_cuda(context(), index);
    });
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    auto built = guarded([&] { return build_index_cuda(context(), keys, order, options); });
    bool host_has_keys = keys.size == 0 || !device_.owns(keys.data);
    if (!built.ok() && built.status().code() == StatusCode::resource_exhausted && host_has_keys) {
      return host_->build_index(keys, order, options);
    }
    return built;
  }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      return std::unique_ptr<BackendMemory>(std::make_unique<CudaMemory>(device_, bytes));
    });
  }

  Status copy(void* to, const void* from, uint64_t bytes) override {
    if (bytes == 0) return {};
    bool to_here = device_.owns(to), from_here = device_.owns(from);
    if (!to_here && !from_here) return host_->copy(to, from, bytes);
    return guarded([&] {
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
    return guarded([&] {
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

  static bool is_here(const IndexView& index) {
    return index.resident != nullptr && index.resident->on_device();
  }
  // Whether the host can search an index.
  Status check_host(const IndexView& index) const {
    if (!is_here(index) || !device_.owns(index.keys.data)) return {};
    return Status::invalid("an index that lies on the device alone, among others that do not")
        .with_remedy("make all indexes of a search resident, or none");
  }
  static Status check_sizes(const KeyColumn& queries, size_t out) {
    if (out == queries.size) return {};
    return Status::invalid("room for " + std::to_string(out) + " results of " +
                           std::to_string(queries.size) + " queries");
  }

  Status search(const IndexView& index, CudaSearch op, const KeyColumn& queries,
                std::span<uint32_t> out) {
    STRIDE_TRY(check_sizes(queries, out.size()));
    return guarded([&] {
      search_in_chunks(transfer_, queries, out.data(), sizeof(uint32_t),
                       [&](const KeyColumn& chunk, void* results, cudaStream_t stream) {
                         search_cuda(*index.resident, op, chunk, static_cast<uint32_t*>(results),
                                     stream);
                       });
      return Status();
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
    search_in_chunks(transfer_, queries, out.data(), sizeof(Location),
                     [&](const KeyColumn& chunk, void* results, cudaStream_t chunk_stream) {
                       find_in_cuda(list.data(), static_cast<uint32_t>(on_device.size()), width,
                                    chunk, static_cast<Location*>(results), chunk_stream);
                     });
    return {};
  }

  std::unique_ptr<Backend> host_;
  CudaDevice device_;
  CudaTransfer transfer_;
};

}  // namespace

Result<std::unique_ptr<Backend>> Backend::cuda(const CudaOptions& options) {
  return guarded([&]() -> Result<std::unique_ptr<Backend>> {
    return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(options));
  });
}

}  // namespace stride
