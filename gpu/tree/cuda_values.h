// Values that are kept in device memory: found, measured and gathered there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device/cuda_device.h"
#include "gpu/tree/cuda_index.h"
#include "gpu/tree_index.h"
#include "storage/column.h"

namespace stride {

// The indexes of a search, newest first, as its kernels want them.
class CudaIndexList {
 public:
  CudaIndexList(CudaDevice& device, std::span<const IndexView> indexes, cudaStream_t stream);

  // Starts the search, on any stream that comes after the one that the list was made on.
  void find(const KeyColumn& queries, Location* out, const QueryPieces* pieces,
            cudaStream_t stream) const;
  void find(const KeyColumn& queries, Location* out, cudaStream_t stream) const {
    find(queries, out, nullptr, stream);
  }
  QueryAccess access(const KeyColumn& queries) const;
  const DeviceIndexes& indexes() const { return indexes_; }

 private:
  CudaArray<const DeviceIndex*> list_;  // where there are many
  DeviceIndexes indexes_{};
  uint32_t width_ = 0;  // of the numbers that all keys are; 0: they are not
};

// Whether a query was found, and where its value ends: the sum of the lengths up to there.
struct ValueEnd {
  uint64_t word;  // the lowest bit says whether it was found
  constexpr bool found() const { return word & 1; }
  constexpr uint64_t end() const { return word >> 1; }
};

// Start work on the stream; all is in device memory.
//
// Makes locations of hidden rows absent, and sums up the lengths of values. ends may be null.
void measure_values_cuda(CudaDevice& device, const CudaIndexList& indexes, Location* locations,
                         uint64_t count, ValueEnd* ends, cudaStream_t stream);
// Copies the values of `count` queries one after the other. What would end past `capacity` is left
// out.
void gather_values_cuda(const CudaIndexList& indexes, const Location* locations,
                        const ValueEnd* ends, uint64_t count, std::byte* out, uint64_t capacity,
                        cudaStream_t stream);
// The same for bytes [begin, end) of all values, slot_bytes a piece.
void gather_pieces_cuda(const CudaIndexList& indexes, const Location* locations,
                        const ValueEnd* ends, uint64_t count, uint64_t begin, uint64_t end,
                        const PieceFlags& flags, std::byte* ring, cudaStream_t stream);
// Copies ends to where the device can write; pieces: StartSearch.
void copy_ends_cuda(const ValueEnd* ends, uint64_t count, void* out, const QueryPieces* pieces,
                    cudaStream_t stream);
// Copies keys and values to places of one width, a place for each location. Hidden rows are none.
void gather_rows_cuda(CudaDevice& device, const CudaIndexList& indexes, const Location* locations,
                      uint64_t count, const GatheredRows& out, cudaStream_t stream);
// Keys that are made of columns (TreeIndex::make_keys_on_device()).
void make_keys_cuda(std::span<const DeviceKeyPart> parts, uint64_t rows, std::byte* keys,
                    cudaStream_t stream);
// ends as bits and offsets.
void unpack_ends_cuda(const ValueEnd* ends, uint64_t count, uint32_t* found, uint64_t* offsets,
                      cudaStream_t stream);

}  // namespace stride
