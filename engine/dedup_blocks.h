// How a compressed dedup table (engine/dedup_table.h) keeps its vectors: rows are blocks of them
// (storage/vector_block.h), and one row says so. docs/format-dedup.md has every byte.
//
//   key 0                  vectors 0 to B - 1        B: vectors_of_block(words)
//   key B                  vectors B to 2 B - 1
//   key 2 B                those that are left: a block that is not full is the last
//   key UINT64_MAX         DedupHead
//
// Keys are 8 bytes, big-endian. What the rows are depends on nothing but the vectors: the block
// that is not full is replaced as vectors come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/database.h"
#include "engine/options.h"
#include "engine/result_buffer.h"
#include "engine/scan.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

struct DedupHead {
  static constexpr uint64_t mark = 0x0A50554444525453;  // "STRDDUP\n"
  static constexpr uint32_t newest = 1;                 // the version that is written
  uint64_t magic = mark;
  uint32_t version = newest;
  uint32_t words = 0;  // of each vector
};
static_assert(sizeof(DedupHead) == 16 && alignof(DedupHead) == 8);

// corruption.
Status damaged_dedup_table(const std::string& table, const std::string& what);
// Nothing: the table has no such row, and is no compressed dedup table. unsupported_version, and
// corruption: one that cannot be read.
Result<std::optional<DedupHead>> read_dedup_head(const Database& database, const Table& table);
// Makes a table of vectors of so many words, with its head. already_exists: it is there.
Status create_compressed_table(Database& database, const std::string& name, uint32_t words,
                               std::optional<Durability> durability);

// Reads the rows of a compressed table in the order of their keys. A row is corruption that is no
// block of vectors of so many words, or does not begin where the one before it ends.
class BlockRowReader {
 public:
  BlockRowReader(std::string table, uint32_t words) : table_(std::move(table)), words_(words) {}

  // Calls put(vectors) for many at a time, those of the smallest ids first; columns of 4 * words
  // bytes a row. A status of it that is not ok ends the reading.
  using Put = std::function<Status(const KeyColumn& vectors)>;
  Status read(Scan* scan, const Put& put);
  // How many vectors the table has, from its last rows alone.
  Result<uint64_t> count(const Snapshot& snapshot, const Table& table) const;

 private:
  Status add(Bytes key, Bytes value);
  Status damaged(uint64_t id, const std::string& what) const;

  const std::string table_;
  const uint32_t words_;
  uint64_t vectors_ = 0;  // that were read
  bool ended_ = false;    // the last block was not full, or the head came
  ResultBuffer<std::byte> decoded_;
  uint64_t waiting_ = 0;  // in decoded_
};

// Makes rows of vectors.
class BlockRowWriter {
 public:
  explicit BlockRowWriter(uint32_t words) : words_(words) {}

  // The first id of the block that has the id.
  uint64_t block_of(uint64_t id) const;
  // The rows of n vectors, of which the first has an id that begins a block.
  void make(uint64_t first, const std::byte* vectors, uint64_t n);
  // Views, valid until the next make().
  KeyColumn keys() const;
  ValueColumn values() const;

 private:
  const uint32_t words_;
  uint64_t rows_ = 0;
  ResultBuffer<uint64_t> keys_, ends_;
  ResultBuffer<std::byte> values_;
};

}  // namespace stride
