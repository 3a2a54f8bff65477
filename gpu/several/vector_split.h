// Vectors, or ids of vectors, put together by the part of a set that has them.
//
//   auto split = split_vectors(device, vectors, hash, parts, in_order, memory);
//   for each part: find rows(part), on any device, and write what is found to ids(part)
//   Status s = (*split)->put_ids(ids, was_new);   // ids[i]: of vectors[i]
//
// The id of a vector is its id in its part times the number of parts, and the number of the part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gpu/backend.h"
#include "gpu/set/vector_layout.h"
#include "gpu/several/room_cache.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

inline constexpr size_t max_vector_parts = 16;

// The part that has a vector. All bits of the hash choose it.
STRIDE_HD inline uint32_t part_of_hash(uint64_t hash, uint32_t parts) {
  return static_cast<uint32_t>(scale(hash, parts));
}

// Belongs to the thread that has made it. All memory is the device's.
class VectorSplit {
 public:
  static constexpr uint64_t max_rows = uint64_t{1} << 31;

  virtual ~VectorSplit() = default;

  virtual KeyColumn rows(size_t part) const = 0;
  // Room for the ids that rows(part) have in the part, and for a bit of each.
  virtual std::span<uint64_t> ids(size_t part) = 0;
  virtual std::span<uint64_t> was_new(size_t part) = 0;
  // Writes both in the order of the vectors that were given. Null: not wanted.
  virtual Status put_ids(uint64_t* ids, uint64_t* was_new) = 0;
};

// The same for ids, whose vectors are asked for.
class IdSplit {
 public:
  virtual ~IdSplit() = default;

  // As the part gave them. What no part ever gave is an id that the part never gave.
  virtual std::span<const uint64_t> ids(size_t part) const = 0;
  // Room for their vectors.
  virtual std::span<std::byte> vectors(size_t part) = 0;
  virtual Status put_vectors(std::byte* vectors) = 0;
  // Which of the ids that were given ids(part)[i] is.
  virtual Result<uint64_t> row(size_t part, uint64_t i) const = 0;
};

// vectors, ids: in memory that the device reads, at most max_rows; they stay until the split goes.
// parts: at most max_vector_parts. in_order: rows of a part stay in their order, as ids do.
// memory: of the device, which nothing else uses until the split goes; where the device is the
// host, none is taken. resource_exhausted: no room on the device.
Result<std::unique_ptr<VectorSplit>> split_vectors(Backend& device, const KeyColumn& vectors,
                                                   const VectorHash& hash, size_t parts,
                                                   bool in_order, const RoomOfDevice& memory);
Result<std::unique_ptr<IdSplit>> split_ids(Backend& device, std::span<const uint64_t> ids,
                                           uint32_t words, size_t parts,
                                           const RoomOfDevice& memory);

// What these two do on a real device.
Result<std::unique_ptr<VectorSplit>> split_vectors_on(CudaDevice& device, const KeyColumn& vectors,
                                                      const VectorHash& hash, size_t parts,
                                                      bool in_order, const RoomOfDevice& memory);
Result<std::unique_ptr<IdSplit>> split_ids_on(CudaDevice& device, std::span<const uint64_t> ids,
                                              uint32_t words, size_t parts,
                                              const RoomOfDevice& memory);

}  // namespace stride
