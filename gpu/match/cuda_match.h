// Longest matches on a device: what they search is built there, kept there and searched in batches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_transfer.h"
#include "gpu/location.h"
#include "gpu/longest_prefix.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// As the calls of LongestPrefix of the same names; they throw CudaFailure and std::bad_alloc. Only
// of addresses of up to max_tree_address_bits. The prefixes have passed check_prefixes().
Status build_matches_cuda(const CudaContext& context, const PackedColumn& prefixes,
                          uint32_t address_bits, std::vector<std::byte>* image,
                          std::vector<uint32_t>* parents);
std::shared_ptr<ResidentMatches> make_resident_cuda(const CudaContext& context,
                                                    const MatchView& matches,
                                                    const MatchRows& rows);

// Starts a batch on the stream. Addresses, a column of the width of the matches, and results are in
// device memory or pinned host memory; pieces: StartSearch.
void match_cuda(const ResidentMatches& matches, const KeyColumn& addresses, uint32_t* out,
                const QueryPieces* pieces, cudaStream_t stream);

void match_rows_cuda(const ResidentMatches& base, uint32_t newer, const ResidentMatches* changes,
                     const KeyColumn& addresses, Location* out, cudaStream_t stream);
// Whether match_rows_cuda() can.
Status check_rows_cuda(const ResidentMatches& matches, const KeyColumn& addresses);
// As mark_use_cuda() of an index.
void mark_use_cuda(const ResidentMatches& matches, cudaStream_t stream);

}  // namespace stride
