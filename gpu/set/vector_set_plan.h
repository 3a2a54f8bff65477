// What both backends check and decide alike before a set is made or called.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/set/vector_layout.h"
#include "gpu/vector_set.h"

namespace stride {

// invalid_argument: options that do not hold. Fills in what was left to us.
Status complete_options(VectorSetOptions* options);
// The table for so many entries, as the options say.
SlotLayout layout_of(const VectorSetOptions& options, uint64_t entries);

inline uint64_t bitmap_words(uint64_t bits) { return (bits + 63) / 64; }

// Dense ids are 32 bits in the hash table: 2^32 - 1 says that an entry is none.
inline constexpr uint64_t max_dense_ids = 0xFFFFFFFE;

// Ids of nodes that are 32 bits, of which all ones is none.
inline constexpr uint64_t max_narrow_ids = 0xFFFFFFFE;

// An entry of a dense set's hash table: part of the vector's hash, and its number. Vectors of the
// batch that is being put have, until it is known which of them are new, the numbers that follow
// those of all before.
struct DenseEntry {
  STRIDE_HD static uint64_t of(uint64_t hash, uint64_t number) { return hash << 32 | (number + 1); }
  STRIDE_HD static bool may_be(uint64_t entry, uint64_t hash) {
    return static_cast<uint32_t>(entry >> 32) == static_cast<uint32_t>(hash);
  }
  STRIDE_HD static uint64_t number(uint64_t entry) { return static_cast<uint32_t>(entry) - 1; }
};

// Rows of a launch: as many as fit, at least spare_rows, which tables keep free.
inline constexpr uint64_t spare_rows = 4096;
inline uint64_t rows_of_piece(uint64_t left, uint64_t room, uint64_t most) {
  uint64_t rows = room < spare_rows ? spare_rows : room / 64 * 64;
  if (rows > most) rows = most;
  return rows < left ? rows : left;
}

// The levels of the binary tree of a compressed vector: neighbours of a level make pairs, and one
// that is left over goes up as it is, until two are left, which are the root. Two words or one
// have no levels below.
STRIDE_HD inline uint32_t items_above(uint32_t items) { return (items + 1) / 2; }

}  // namespace stride
