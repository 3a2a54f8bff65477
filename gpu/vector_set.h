// Sets of fixed-length vectors of 32-bit words, filled and asked in bulk: what finds duplicates.
//
//   auto set = make_vector_set({.words = 4, .capacity = 100'000'000});   //
//   engine/make_vector_set.h KeyColumn vectors = Column::fixed(states.data(), 16, n); Status s =
//   (*set)->find_or_put(vectors, ids, was_new);   // n ids, n bits s = (*set)->get(ids, back); //
//   the same vectors
//
// Every bit pattern is a vector like any other. A vector that comes several times, in one batch or
// in several, has one id, and exactly one of them is new. An id never changes and is never given
// twice; clear() forgets all.
//
// The forms of a set:
//   dense       ids 0, 1, 2, ... in the order of first occurrence, the same from every backend and
//               with any number of threads (but where so many vectors share a hash that a device
//               has to put them in a second pass). The vectors lie in one array by id; a hash table
//               of 8 bytes a slot finds them.
//   slots       (1, 2 or 4 words) the vectors lie in the hash table itself and an id is a place
//               there, below id_limit(): one access to memory finds or puts a vector. Which place
//               depends on the order in which threads come.
//   compressed  a vector is a binary tree of pairs: of neighbouring words, then of the ids of
//               neighbouring pairs, up to a root. Equal pairs are one node, in a table that all
//               vectors share, so that vectors which differ in few words cost little more than
//               their roots, 8 bytes a slot. An id is a place in the table of roots. After A.
//               Laarman, J. van de Pol, M. Weber: Parallel recursive state compression for free
//               (2011).
//
// Tables are open addressing in buckets of a memory sector: a vector is looked for in its bucket,
// then in neighbouring buckets, then in places by further hash functions (gpu/set/vector_layout.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

enum class VectorForm { dense, slots, compressed };

inline constexpr uint32_t max_vector_words = 64;

struct VectorSetOptions {
  uint32_t words = 2;  // of each vector, 1 to max_vector_words
  VectorForm form = VectorForm::dense;
  // Different vectors that fit at once.
  uint64_t capacity = 1 << 16;
  // Takes more memory when it is full, as often as there is some: a set of slots is looked for in
  // as many tables as it has doubled. Else resource_exhausted.
  bool grows = true;
  // Share of the hash table's slots that are taken when `capacity` vectors are there: above 0, at
  // most 1. Fuller tables are smaller and slower.
  double load = 0.8;

  // A compressed set has room for so many nodes below the roots at once; 0: an eighth of the
  // capacity.
  uint64_t node_capacity = 0;
  // The nodes of a compressed set are pairs of 64 bits, not of 32, for more than 2^32 - 2 nodes.
  bool wide_nodes = false;

  // Against vectors that were made to collide: a number that their maker does not know.
  uint64_t seed = 0;

  // For experiments; 0: what measures best.
  uint32_t bucket_slots = 0;  // a power of two from 2 to 64
  uint32_t neighbours = 0;    // buckets that are tried for each hash function: 1, 2, 4 or 8
};

// Find and get may be called from several threads at once; every other call alone. Vectors are
// columns of 4 * words bytes a row. Vectors, ids and bits may each lie in host memory or in that of
// the backend's device, there aligned to 4 bytes (vectors) and 8. Calls return when all is done.
// Must not outlive its backend.
class STRIDE_API VectorSet {
 public:
  // The id of what is not there.
  static constexpr uint64_t absent = UINT64_MAX;

  virtual ~VectorSet() = default;

  // ids: one for each vector, or none. was_new: (vectors.size + 63) / 64 words, or none; bit i says
  // whether vector i came for the first time, and unused bits are 0. resource_exhausted: some
  // vectors did not fit, and have the id `absent`; all others were put. invalid_argument (then
  // nothing is done): vectors of another width, or room of another size.
  Status find_or_put(const KeyColumn& vectors, std::span<uint64_t> ids,
                     std::span<uint64_t> was_new);
  // The id of each vector, or `absent`.
  Status find(const KeyColumn& vectors, std::span<uint64_t> ids);
  // ids.size() times 4 * words bytes. not_found: an id that was never given; what `vectors` then
  // holds is undefined.
  Status get(std::span<const uint64_t> ids, std::span<std::byte> vectors);
  // Forgets all vectors; ids begin anew.
  Status clear();

  virtual uint64_t size() const = 0;      // vectors
  virtual uint64_t id_limit() const = 0;  // all ids are smaller
  // Counts the nodes below the roots of a compressed set. 0 for others.
  virtual uint64_t nodes() const { return 0; }
  virtual uint64_t memory_bytes() const = 0;
  uint32_t words() const { return words_; }

 protected:
  explicit VectorSet(uint32_t words) : words_(words) {}

  uint32_t words_;

 private:
  friend class SplitVectorSet;  // calls those of devices

  // As the calls above; the arguments were checked, and there is at least one vector. ids and
  // was_new: null where there is none. They return how many vectors did not fit, and the first row
  // whose id was never given, or `absent`.
  virtual Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids,
                                       uint64_t* was_new) = 0;
  virtual Status find_vectors(const KeyColumn& vectors, uint64_t* ids) = 0;
  virtual Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) = 0;
  virtual Status clear_vectors() = 0;
};

}  // namespace stride
