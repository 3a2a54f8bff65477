#include "gpu/tree/cuda_tree_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/device/cuda_fallback.h"
#include "gpu/device/cuda_piece_run.h"
#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_stream_work.h"
#include "gpu/tree/choose_strides.h"
#include "gpu/tree/cuda_index.h"
#include "gpu/tree/cuda_values.h"
#include "gpu/tree/cuda_values_pipeline.h"
#include "gpu/tree/index_host.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

bool is_resident(const IndexView& index) {
  return index.resident != nullptr && index.resident->on_device();
}

bool all_resident(std::span<const IndexView> indexes) {
  return !indexes.empty() && std::all_of(indexes.begin(), indexes.end(), is_resident);
}

Status check_resident(std::span<const IndexView> indexes, bool values) {
  for (const IndexView& index : indexes) {
    if (is_resident(index) && (index.resident->has_values() || !values)) continue;
    return Status(StatusCode::unavailable, values ? "the values of an index are not on the device"
                                                  : "an index is not on the device")
        .with_remedy("make all indexes of a search resident, with their values");
  }
  return {};
}

MarkUse marking(std::span<const IndexView> indexes) {
  return [indexes](cudaStream_t to) {
    for (const IndexView& index : indexes) mark_use_cuda(*index.resident, to);
  };
}

// Hands the ranks of a search of one index over as locations.
Status take_ranks(uint64_t first, uint64_t count, const uint32_t* ranks,
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

class CudaTreeIndex final : public TreeIndex {
 public:
  CudaTreeIndex(const CudaContext& context, TreeIndex& host, PlanStrides plan)
      : TreeIndex(AccessCosts::typical_device()), context_(context), host_(host), plan_(plan) {}

  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    if (!context_.owns(keys.data)) return host_.measure_keys(keys, options, statistics);
    return cuda_guarded([&] {
      measure_keys_cuda(context_, keys, options, statistics);
      return Status();
    });
  }
  Status measure_costs(AccessCosts* costs) override {
    return cuda_guarded([&] {
      measure_costs_cuda(context_.device, costs);
      return Status();
    });
  }

  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    return device_or_host(
        [&] { return build_tree_cuda(context_, keys, choose_strides(), options, image); },
        [&] { return host_.build_tree(keys, options, image); });
  }

  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return search(
        indexes, queries, out, [&] { return find_here(indexes, queries, out); },
        [&](const KeyColumn& there, std::span<Location> room) {
          return host_.find(indexes, there, room);
        });
  }
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override {
    if (!all_resident(indexes)) return host_.find_blocks(indexes, queries, take);
    return cuda_guarded([&] { return find_blocks_here(indexes, queries, take); });
  }
  bool finds_in_pieces(std::span<const IndexView> indexes,
                       const KeyColumn& queries) const override {
    return all_resident(indexes) &&
           access_of(number_width(indexes), queries) == QueryAccess::once &&
           fits_pieces(queries.size, queries.width, sizeof(Location));
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return search_one(index, CudaSearch::find_ranks, &TreeIndex::find_ranks, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_one(index, CudaSearch::lower_bound, &TreeIndex::lower_bound, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_one(index, CudaSearch::upper_bound, &TreeIndex::upper_bound, queries, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return search(
        {&index, 1}, queries, out,
        [&] {
          return in_chunks(
              queries, out, QueryAccess::any,
              [&](const KeyColumn& chunk, void* room, const QueryPieces*, cudaStream_t on) {
                find_prefixes_cuda(*index.resident, chunk, static_cast<RankInterval*>(room), on);
              });
        },
        [&](const KeyColumn& there, std::span<RankInterval> room) {
          return host_.prefix_interval(index, there, room);
        });
  }

  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    return cuda_guarded([&]() -> Result<std::shared_ptr<ResidentIndex>> {
      STRIDE_TRY(check_index(index, rows));
      return make_resident_cuda(context_, index, rows);
    });
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    auto on_device = [&] {
      return build_index_cuda(context_, keys, order, choose_strides(), options);
    };
    if (context_.owns(keys)) return cuda_guarded(on_device);
    return device_or_host(on_device, [&] { return host_.build_index(keys, order, options); });
  }

  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                   const KeyColumn& queries,
                                                   std::span<uint64_t> found,
                                                   std::span<uint64_t> ends) override {
    return cuda_guarded([&]() -> Result<std::unique_ptr<FoundValues>> {
      STRIDE_TRY(check_resident(indexes, true));
      return find_values_cuda(context_.transfer, indexes, queries, found, ends);
    });
  }
  Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries, Location* out,
                        void* stream) override {
    STRIDE_TRY(check_resident(indexes, /*values=*/false));
    return on_stream(context_.device, stream, marking(indexes), [&](cudaStream_t to) {
      CudaIndexList list(context_.device, indexes, to);
      list.find(queries, out, to);
      measure_values_cuda(context_.device, list, out, queries.size, nullptr, to);
    });
  }
  Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const DeviceValues& out, void* stream) override {
    STRIDE_TRY(check_resident(indexes, /*values=*/true));
    return on_stream(context_.device, stream, marking(indexes), [&](cudaStream_t to) {
      CudaIndexList list(context_.device, indexes, to);
      CudaArray<Location> locations(context_.device, to, queries.size);
      if (out.width) {
        list.find(queries, locations.data(), to);
        gather_rows_cuda(context_.device, list, locations.data(), queries.size,
                         {.values = out.values,
                          .value_width = out.width,
                          .there = out.there,
                          .places = out.places},
                         to);
        return;
      }
      CudaArray<ValueEnd> ends(context_.device, to, queries.size);
      list.find(queries, locations.data(), to);
      measure_values_cuda(context_.device, list, locations.data(), queries.size, ends.data(), to);
      gather_values_cuda(list, locations.data(), ends.data(), queries.size, out.values,
                         out.capacity, to);
      unpack_ends_cuda(ends.data(), queries.size, out.found, out.offsets, to);
    });
  }
  Status gather_on_device(std::span<const IndexView> indexes, const Location* locations,
                          uint64_t count, const GatheredRows& out, void* stream) override {
    STRIDE_TRY(check_resident(indexes, /*values=*/out.value_width != 0));
    return on_stream(context_.device, stream, marking(indexes), [&](cudaStream_t to) {
      CudaIndexList list(context_.device, indexes, to);
      gather_rows_cuda(context_.device, list, locations, count, out, to);
    });
  }
  Status make_keys_on_device(std::span<const DeviceKeyPart> parts, uint64_t rows, std::byte* keys,
                             void* stream) override {
    return on_stream(
        context_.device, stream, [](cudaStream_t) {},
        [&](cudaStream_t to) { make_keys_cuda(parts, rows, keys, to); });
  }

 private:
  ChooseStrides choose_strides() {
    return [this](const KeyStatistics& statistics, const TreeOptions& options) {
      auto run_each = [this](uint64_t n, const auto& body) {
        context_.transfer.host().parallel_for(n, 1, body);
      };
      return plan_(statistics, access_costs(), options, run_each);
    };
  }
  // Whether the host can search an index.
  Status check_host(const IndexView& index) const {
    if (!is_resident(index)) return {};
    if (!context_.device.owns(index.keys.data) && !context_.device.owns(index.tree.image))
      return {};
    return Status::invalid("a search that the host has to do, of an index on the device alone")
        .with_remedy("make all indexes of a search resident, or none");
  }

  // Runs `here` where all indexes are resident, and where they are not, or the device's memory does
  // not suffice, `host`, with queries and results in host memory.
  template <class T, class Here, class Host>
  Status search(std::span<const IndexView> indexes, const KeyColumn& queries, std::span<T> out,
                const Here& here, const Host& host) {
    STRIDE_TRY(check_room(queries.size, out.size()));
    const bool all = all_resident(indexes);
    Status status;
    if (all) {
      status = cuda_guarded(here);
      if (status.code() != StatusCode::resource_exhausted) return status;
    }
    for (const IndexView& index : indexes) {
      if (Status can = check_host(index); !can.ok()) return all ? status : can;
    }
    return no_throw([&] { return search_on_host(context_, queries, out, host); });
  }

  template <class T>
  Status in_chunks(const KeyColumn& queries, std::span<T> out, QueryAccess access,
                   const StartSearch& start) {
    search_in_chunks(context_.transfer, queries, out.data(), {sizeof(T), access, start});
    return {};
  }

  using HostSearch = Status (TreeIndex::*)(const IndexView&, const KeyColumn&, std::span<uint32_t>);

  Status search_one(const IndexView& index, CudaSearch op, HostSearch on_host,
                    const KeyColumn& queries, std::span<uint32_t> out) {
    return search(
        {&index, 1}, queries, out,
        [&] {
          return in_chunks(
              queries, out, access_of(number_width(*index.resident), queries),
              [&](const KeyColumn& chunk, void* room, const QueryPieces* pieces, cudaStream_t on) {
                search_cuda(*index.resident, op, chunk, static_cast<uint32_t*>(room), pieces, on);
              });
        },
        [&](const KeyColumn& there, std::span<uint32_t> room) {
          return (host_.*on_host)(index, there, room);
        });
  }

  Status find_here(std::span<const IndexView> indexes, const KeyColumn& queries,
                   std::span<Location> out) {
    CudaStream stream(context_.device);
    CudaIndexList list(context_.device, indexes, stream);
    stream.wait();
    return in_chunks(queries, out, list.access(queries), find_in(list));
  }

  static StartSearch find_in(const CudaIndexList& list) {
    return [&list](const KeyColumn& chunk, void* room, const QueryPieces* pieces, cudaStream_t on) {
      list.find(chunk, static_cast<Location*>(room), pieces, on);
    };
  }

  // One index sends back ranks alone, half as much.
  Status find_blocks_here(std::span<const IndexView> indexes, const KeyColumn& queries,
                          const TakeLocations& take) {
    if (indexes.size() == 1) {
      const ResidentIndex& index = *indexes[0].resident;
      auto start = [&](const KeyColumn& chunk, void* room, const QueryPieces* pieces,
                       cudaStream_t on) {
        search_cuda(index, CudaSearch::find_ranks, chunk, static_cast<uint32_t*>(room), pieces, on);
      };
      return search_in_chunks(
          context_.transfer, queries,
          {sizeof(uint32_t), access_of(number_width(index), queries), start, take.meanwhile()},
          [&](uint64_t first, uint64_t count, const std::byte* results) {
            return take_ranks(first, count, reinterpret_cast<const uint32_t*>(results), take);
          });
    }
    CudaStream stream(context_.device);
    CudaIndexList list(context_.device, indexes, stream);
    stream.wait();
    return search_in_chunks(
        context_.transfer, queries,
        {sizeof(Location), list.access(queries), find_in(list), take.meanwhile()},
        [&](uint64_t first, uint64_t count, const std::byte* results) {
          return take(first, {reinterpret_cast<const Location*>(results), count});
        });
  }

  CudaContext context_;
  TreeIndex& host_;
  PlanStrides plan_;
};

}  // namespace

std::unique_ptr<TreeIndex> make_cuda_tree_index(const CudaContext& context, TreeIndex& host,
                                                PlanStrides plan) {
  return std::make_unique<CudaTreeIndex>(context, host, plan);
}

}  // namespace stride
