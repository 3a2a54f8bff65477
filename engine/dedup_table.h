// Durable numbers for vectors of 32-bit words: each different one has an id, 0, 1, 2, ... in the
// order of first occurrence, now and after reopening.
//
//   Result<DedupTable> states = DedupTable::open(*database, "states", {.words = 4});
//   KeyColumn vectors = Column::fixed(data.data(), 16, n);
//   Status s = states->find_or_put(vectors, ids, was_new);   // durable when it returns
//   s = states->get(ids, back);                              // the same vectors
//
// The vectors are rows of an ordinary table: the key is the id (8 bytes, big-endian), the value the
// vector's bytes as they lie in memory (little-endian words). Of a compressed one a row is a block
// of vectors (docs/format-dedup.md). A hash table in memory finds them; it is built when the table
// is opened, by one pass over the rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/database.h"
#include "engine/options.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

struct DedupOptions {
  uint32_t words = 2;  // of each vector, 1 to 64
  // A table whose vectors take fewer bytes on the disk: where words are small, all alike, or have
  // few values among vectors that come one after the other; where not, 3 bytes more for each 16 KiB
  // at most. It is chosen when the table is made and kept with it. Each call that puts something
  // writes the last block of vectors, up to 16 KiB, again: for large batches.
  bool compressed = false;
  // What each call that puts something waits for; none: the database's.
  std::optional<Durability> durability;
  unsigned threads = 0;  // 0: one for each core
  // What holds the hash table. Null: host threads of its own.
  std::shared_ptr<Backend> backend;
};

// Must not outlive its database. Those of one table share what is in memory, and nothing else may
// write it. Thread-safe: find, get and size run at the same time, find_or_put alone. All memory is
// the host's. In a forked child calls that return a Status are `closed`.
class STRIDE_API DedupTable {
 public:
  // The id of what is not there.
  static constexpr uint64_t absent = UINT64_MAX;

  // Makes the table where it is missing. Where it is open already this is the same one: its
  // durability, threads and backend stay. invalid_argument: a number of words that is not possible,
  // a table with other rows than these, one that is compressed, or is not, where `options` say the
  // other, or one that is open through another Database of the same path. corruption: a compressed
  // one whose blocks are damaged. resource_exhausted: its vectors do not fit in memory.
  static Result<DedupTable> open(Database& database, const std::string& name,
                                 const DedupOptions& options = {});
  DedupTable(DedupTable&&) noexcept;
  DedupTable& operator=(DedupTable&&) noexcept;
  ~DedupTable();

  // Vectors are columns of 4 * words bytes a row. ids: one for each, or empty. was_new: empty, or
  // (vectors.size + 63) / 64 words; bit i says whether vector i came for the first time. New ones
  // are put in one transaction: large batches are fast. When it fails nothing is put, ids and
  // was_new are undefined, and the table goes on as it was; as WriteTransaction::commit(). Where it
  // cannot be read again after that, all calls return `closed`: open it again.
  Status find_or_put(const KeyColumn& vectors, std::span<uint64_t> ids,
                     std::span<uint64_t> was_new);
  // The id of each vector, or `absent`.
  Status find(const KeyColumn& vectors, std::span<uint64_t> ids) const;
  // ids.size() times 4 * words bytes. not_found: an id that was never given.
  Status get(std::span<const uint64_t> ids, std::span<std::byte> vectors) const;

  uint64_t size() const;  // different vectors; all ids are smaller
  uint64_t memory_bytes() const;
  uint32_t words() const;
  bool compressed() const;  // on the disk

 private:
  struct STRIDE_INTERNAL State;
  explicit DedupTable(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // of this object alone
};

}  // namespace stride
