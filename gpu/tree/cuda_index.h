// Indexes in device memory: made, and searched in batches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>

#include "gpu/device/cuda_device.h"
#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_transfer.h"
#include "gpu/execution_context.h"
#include "gpu/keys/key_bits.h"
#include "gpu/tree/choose_strides.h"
#include "gpu/tree_index.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

struct DeviceIndex;

// The indexes of a search, newest first: a few travel with a kernel's arguments, so that nobody
// waits for a list of them.
struct DeviceIndexes {
  static constexpr uint32_t capacity = 8;
  const DeviceIndex* few[capacity];
  const DeviceIndex* const* all;  // null: the few are all
  uint32_t count;

  STRIDE_HD const DeviceIndex& operator[](uint32_t i) const { return *(all ? all[i] : few[i]); }
};

enum class CudaSearch { find_ranks, lower_bound, upper_bound };

// Throws CudaFailure (unavailable) where this build has no code for the current device.
void check_kernels();

// As the calls of TreeIndex of the same names; they throw CudaFailure and std::bad_alloc.
std::shared_ptr<ResidentIndex> make_resident_cuda(const CudaContext& context,
                                                  const IndexView& index, const IndexRows& rows);
Result<std::shared_ptr<ResidentIndex>> build_index_cuda(const CudaContext& context,
                                                        const KeyColumn& keys, KeyOrder order,
                                                        const ChooseStrides& choose,
                                                        const TreeOptions& options);
Status build_tree_cuda(const CudaContext& context, const PackedColumn& keys,
                       const ChooseStrides& choose, const TreeOptions& options,
                       std::vector<std::byte>* image);
// keys: in the device's memory.
void measure_keys_cuda(const CudaContext& context, const PackedColumn& keys,
                       const SampleOptions& options, KeyStatistics* statistics);

// Start a batch of searches on the stream. Queries and results are in device memory, or, where
// access_of() says so, in pinned host memory; pieces: StartSearch.
void search_cuda(const ResidentIndex& index, CudaSearch search, const KeyColumn& queries,
                 uint32_t* out, const QueryPieces* pieces, cudaStream_t stream);
void find_prefixes_cuda(const ResidentIndex& index, const KeyColumn& queries, RankInterval* out,
                        cudaStream_t stream);
void find_in_cuda(const DeviceIndexes& indexes, uint32_t key_width, const KeyColumn& queries,
                  Location* out, const QueryPieces* pieces, cudaStream_t stream);
// How searches by numbers of this width (0: by bytes) read the queries.
QueryAccess access_of(uint32_t number_width, const KeyColumn& queries);
// Keeps the memory of an index from being used again before the work so far on the stream is done.
void mark_use_cuda(const ResidentIndex& index, cudaStream_t stream);
// The width (4 or 8) of the numbers by which an index can be searched; 0: by bytes only.
uint32_t number_width(const ResidentIndex& index);
// That of all of them. Precondition: they are resident.
uint32_t number_width(std::span<const IndexView> indexes);

// Random gathers and copies in device memory (BackendLimits).
void measure_memory_cuda(CudaDevice& device, uint64_t table_bytes, BackendLimits* limits);
void measure_costs_cuda(CudaDevice& device, AccessCosts* costs);

}  // namespace stride
