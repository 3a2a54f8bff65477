#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/device/cuda_device.h"
#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_transfer.h"
#include "gpu/match/cuda_match.h"
#include "gpu/match/match_build_host.h"
#include "gpu/match/match_layout.h"
#include "gpu/match/match_search_host.h"
#include "gpu/scatter/cuda_scatter.h"
#include "gpu/set/cuda_vector_set.h"
#include "gpu/sort/cuda_sort.h"
#include "gpu/tree/cuda_index.h"
#include "gpu/tree/cuda_values.h"
#include "gpu/tree/cuda_values_pipeline.h"
#include "gpu/tree/index_host.h"

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

class CudaHostMemory final : public BackendMemory {
 public:
  explicit CudaHostMemory(uint64_t bytes) : memory_(bytes) {
    data_ = memory_.data();
    size_ = bytes;
  }

 private:
  PinnedMemory memory_;
};

// The host builds less before the device has started.
constexpr uint64_t fewest_prefixes_built_here = 1 << 14;
constexpr uint64_t fewest_sources_added_here = 1 << 17;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options)
      : host_(options.host ? options.host : Backend::host(options.host_threads)),
        device_(options.device, options.memory_limit),
        transfer_(device_, *host_) {
    OnDevice on(device_);
    check_kernels();
  }

  std::string name() const override {
    return "cuda:" + std::to_string(device_.number()) + " (" + device_.model() + ")";
  }
  unsigned threads() const override { return host_->threads(); }
  bool has_device() const override { return true; }

  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    Status status = cuda_guarded([&] { return sort_chunks_cuda(context(), chunks, sorted); });
    if (status.code() != StatusCode::resource_exhausted) return status;
    return host_->sort(chunks, sorted);
  }

  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    if (!lies_here(keys.data)) return host_->measure_keys(keys, options, statistics);
    return cuda_guarded([&] {
      measure_keys_cuda(context(), keys, options, statistics);
      return Status();
    });
  }
  Status measure_costs(AccessCosts* costs) override {
    return cuda_guarded([&] {
      measure_costs_cuda(device_, costs);
      return Status();
    });
  }

  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    Status status = cuda_guarded(
        [&] { return build_tree_cuda(context(), keys, choose_strides(), options, image); });
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
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override {
    bool all = !indexes.empty();
    for (const IndexView& index : indexes) all &= is_resident(index);
    if (!all) return host_->find_blocks(indexes, queries, take);
    return cuda_guarded([&] { return find_blocks_here(indexes, queries, take); });
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
  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    if (prefixes.size < fewest_prefixes_built_here || address_bits > max_tree_address_bits)
      return host_->build_matches(prefixes, address_bits, image, parents);
    Status status = cuda_guarded([&] {
      auto run = [&](uint64_t n, uint64_t grain, const auto& body) {
        host_->parallel_for(n, grain, body);
      };
      STRIDE_TRY(check_prefixes(run, prefixes, address_bits));
      return build_matches_cuda(context(), prefixes, address_bits, image, parents);
    });
    if (status.code() != StatusCode::resource_exhausted) return status;
    return host_->build_matches(prefixes, address_bits, image, parents);
  }
  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override {
    auto on_host = [&](const KeyColumn& there, std::span<uint32_t> room) {
      return host_->longest_match(matches, there, room);
    };
    STRIDE_TRY(check_room(addresses.size, out.size()));
    bool here = matches.resident && (addresses.is_fixed() || !lies_here(addresses));
    if (here) {
      STRIDE_TRY(check_addresses(matches, addresses));
      // All of one width: a column of that width.
      KeyColumn rows = addresses;
      if (!rows.is_fixed() && rows.size > 0)
        rows = Column::fixed(rows.data + rows.begin(0), rows[0].size(), rows.size);
      Status status = cuda_guarded([&] {
        return in_chunks(rows, out,
                         [&](uint64_t, const KeyColumn& chunk, void* room, cudaStream_t on) {
                           match_cuda(*matches.resident, chunk, static_cast<uint32_t*>(room), on);
                         });
      });
      if (status.code() != StatusCode::resource_exhausted) return status;
    }
    return guarded([&] { return search_on_host(addresses, out, on_host); });
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return search(
        {&index, 1}, queries, out,
        [&] {
          return in_chunks(
              queries, out, [&](uint64_t, const KeyColumn& chunk, void* room, cudaStream_t on) {
                find_prefixes_cuda(*index.resident, chunk, static_cast<RankInterval*>(room), on);
              });
        },
        [&](const KeyColumn& there, std::span<RankInterval> room) {
          return host_->prefix_interval(index, there, room);
        });
  }

  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    return cuda_guarded([&]() -> Result<std::shared_ptr<ResidentIndex>> {
      STRIDE_TRY(check_index(index, rows));
      return make_resident_cuda(context(), index, rows);
    });
  }
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                         const MatchRows& rows) override {
    if (reinterpret_cast<const MatchHeader*>(matches.image)->levels == 0) {
      return Status(StatusCode::unavailable,
                    "matches of byte strings or of long addresses are searched on the host");
    }
    return cuda_guarded([&]() -> Result<std::shared_ptr<ResidentMatches>> {
      return make_resident_cuda(context(), matches, rows);
    });
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    auto built = cuda_guarded(
        [&] { return build_index_cuda(context(), keys, order, choose_strides(), options); });
    if (!built.ok() && built.status().code() == StatusCode::resource_exhausted &&
        !lies_here(keys)) {
      return host_->build_index(keys, order, options);
    }
    return built;
  }
  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                   const KeyColumn& queries,
                                                   std::span<uint64_t> found,
                                                   std::span<uint64_t> offsets) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<FoundValues>> {
      STRIDE_TRY(check_resident(indexes, true));
      return find_values_cuda(transfer_, indexes, queries, found, offsets);
    });
  }
  Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries, Location* out,
                        void* stream) override {
    STRIDE_TRY(check_resident(indexes, /*values=*/false));
    return on_stream(stream, marking(indexes), [&](cudaStream_t to) {
      CudaIndexList list(device_, indexes, to);
      list.find(queries, out, to);
      measure_values_cuda(device_, list, out, queries.size, nullptr, to);
    });
  }
  Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const DeviceValues& out, void* stream) override {
    STRIDE_TRY(check_resident(indexes, /*values=*/true));
    return on_stream(stream, marking(indexes), [&](cudaStream_t to) {
      CudaIndexList list(device_, indexes, to);
      CudaArray<Location> locations(device_, to, queries.size);
      CudaArray<ValueEnd> ends(device_, to, queries.size);
      list.find(queries, locations.data(), to);
      measure_values_cuda(device_, list, locations.data(), queries.size, ends.data(), to);
      gather_values_cuda(list, locations.data(), ends.data(), 0, queries.size, out.values,
                         out.capacity, to);
      unpack_ends_cuda(ends.data(), queries.size, out.found, out.offsets, to);
    });
  }
  Status match_on_device(const ResidentMatches& base, uint32_t newer,
                         const ResidentMatches* changes, const KeyColumn& addresses, Location* out,
                         void* stream) override {
    STRIDE_TRY(check_rows_cuda(base, addresses));
    if (changes) STRIDE_TRY(check_rows_cuda(*changes, addresses));
    Mark mark = [&](cudaStream_t to) {
      mark_use_cuda(base, to);
      if (changes) mark_use_cuda(*changes, to);
    };
    return on_stream(stream, mark, [&](cudaStream_t to) {
      match_rows_cuda(base, newer, changes, addresses, out, to);
    });
  }
  Result<std::unique_ptr<ScatterRoute>> make_route(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    STRIDE_TRY(check_targets(targets));
    Result<std::unique_ptr<ScatterRoute>> route = cuda_guarded(
        [&] { return make_route_cuda(context(), targets, target_count, out_of_range); });
    if (route.status().code() != StatusCode::resource_exhausted || lies_here(targets.data))
      return route;
    return host_->make_route(targets, target_count, out_of_range);
  }
  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    return cuda_guarded([&] { return make_vector_set_cuda(context(), options); });
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override { return host_->make_byte_set(); }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      return std::unique_ptr<BackendMemory>(std::make_unique<CudaMemory>(device_, bytes));
    });
  }

  Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<BackendMemory>> {
      OnDevice on(device_);
      return std::unique_ptr<BackendMemory>(std::make_unique<CudaHostMemory>(bytes));
    });
  }

  bool is_on_device(const void* p) const override { return device_.owns(p); }
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
  Status scatter_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                         const ScatterOptions& options, ScatterReport* report) override {
    // A method is one of the device's.
    const bool may_go_to_host = options.method == ScatterMethod::automatic &&
                                !lies_here(sources.data) && !lies_here(targets.data) &&
                                !lies_here(into.data);
    if (may_go_to_host && !options.stream && sources.size < fewest_sources_added_here)
      return host_->scatter(sources, targets, into, options, report);
    Status status = cuda_guarded(
        [&] { return scatter_cuda(context(), sources, targets, into, options, report); });
    if (status.code() != StatusCode::resource_exhausted || !may_go_to_host) return status;
    return host_->scatter(sources, targets, into, options, report);
  }
  CudaContext context() { return {device_, transfer_}; }
  ChooseStrides choose_strides() {
    return [this](const KeyStatistics& statistics, const TreeOptions& options) {
      auto run_each = [this](uint64_t n, const auto& body) { host_->parallel_for(n, 1, body); };
      return with_strides(statistics, access_costs(), options, run_each);
    };
  }

  bool lies_here(const void* p) const { return p != nullptr && device_.owns(p); }
  bool lies_here(const KeyColumn& keys) const {
    return keys.is_fixed() ? device_.owns(keys.data) : device_.owns(keys.offsets);
  }
  static bool is_resident(const IndexView& index) {
    return index.resident != nullptr && index.resident->on_device();
  }
  static Status check_room(uint64_t queries, uint64_t results) {
    if (results == queries) return {};
    return Status::invalid("room for " + std::to_string(results) + " results of " +
                           std::to_string(queries) + " queries")
        .with_remedy("give one result for each query");
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
    STRIDE_TRY(check_room(queries.size, out.size()));
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
          return in_chunks(
              queries, out, [&](uint64_t, const KeyColumn& chunk, void* room, cudaStream_t on) {
                search_cuda(*index.resident, op, chunk, static_cast<uint32_t*>(room), on);
              });
        },
        [&](const KeyColumn& there, std::span<uint32_t> room) {
          return ((*host_).*on_host)(index, there, room);
        });
  }

  Status find_here(std::span<const IndexView> indexes, const KeyColumn& queries,
                   std::span<Location> out) {
    CudaStream stream(device_);
    CudaIndexList list(device_, indexes, stream);
    stream.wait();
    return in_chunks(queries, out,
                     [&](uint64_t, const KeyColumn& chunk, void* room, cudaStream_t on) {
                       list.find(chunk, static_cast<Location*>(room), on);
                     });
  }

  // One index sends back ranks alone, half as much.
  Status find_blocks_here(std::span<const IndexView> indexes, const KeyColumn& queries,
                          const TakeLocations& take) {
    if (indexes.size() == 1) {
      return search_in_chunks(
          transfer_, queries, sizeof(uint32_t),
          [&](uint64_t, const KeyColumn& chunk, void* room, cudaStream_t on) {
            search_cuda(*indexes[0].resident, CudaSearch::find_ranks, chunk,
                        static_cast<uint32_t*>(room), on);
          },
          [&](uint64_t first, uint64_t count, const std::byte* results) {
            return take_ranks(first, count, reinterpret_cast<const uint32_t*>(results), take);
          });
    }
    CudaStream stream(device_);
    CudaIndexList list(device_, indexes, stream);
    stream.wait();
    return search_in_chunks(
        transfer_, queries, sizeof(Location),
        [&](uint64_t, const KeyColumn& chunk, void* room, cudaStream_t on) {
          list.find(chunk, static_cast<Location*>(room), on);
        },
        [&](uint64_t first, uint64_t count, const std::byte* results) {
          return take(first, {reinterpret_cast<const Location*>(results), count});
        });
  }

  static Status take_ranks(uint64_t first, uint64_t count, const uint32_t* ranks,
                           const TakeLocations& take) {
    constexpr uint64_t block = 2048;
    Location locations[block];
    for (uint64_t at = 0; at < count; at += block) {
      uint64_t n = std::min(block, count - at);
      for (uint64_t i = 0; i < n; ++i) {
        uint32_t rank = ranks[at + i];
        locations[i] = {rank == Location::absent ? Location::absent : 0, rank};
      }
      STRIDE_TRY(take(first + at, {locations, n}));
    }
    return {};
  }

  static Status check_resident(std::span<const IndexView> indexes, bool values) {
    for (const IndexView& index : indexes) {
      if (is_resident(index) && (index.resident->has_values() || !values)) continue;
      return Status(StatusCode::unavailable, values ? "the values of an index are not on the device"
                                                    : "an index is not on the device")
          .with_remedy("make all indexes of a search resident, with their values");
    }
    return {};
  }

  using Mark = std::function<void(cudaStream_t)>;
  static Mark marking(std::span<const IndexView> indexes) {
    return [indexes](cudaStream_t to) {
      for (const IndexView& index : indexes) mark_use_cuda(*index.resident, to);
    };
  }
  // Starts work(stream) on the caller's stream, where mark(stream) keeps what it uses; without one,
  // waits until it is done.
  template <class Work>
  Status on_stream(void* stream, const Mark& mark, const Work& work) {
    return cuda_guarded([&] {
      if (!stream) {
        CudaStream own(device_);
        work(own);
        own.wait();
        return Status();
      }
      OnDevice on(device_);
      auto* to = static_cast<cudaStream_t>(stream);
      // Whatever fails, what was started goes on.
      try {
        work(to);
      } catch (...) {
        mark(to);
        throw;
      }
      mark(to);
      return Status();
    });
  }

  std::shared_ptr<Backend> host_;
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
