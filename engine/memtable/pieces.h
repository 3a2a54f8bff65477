// Segments in memory of a table's newest rows, so that whatever reads segments reads these too.
//
// A piece has the rows of some commits, one after the other. Pieces are made when somebody wants to
// read the rows in bulk. Each is at least twice as large as the one after it, which
// keeps their number below the logarithm of the rows', and so the times that a row is sorted.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/catalog/indexed_segment.h"
#include "engine/device/executor.h"
#include "engine/memtable/table_tail.h"
#include "storage/status.h"

namespace stride {

// Thread-safe. Those who want pieces wait for each other, and never for the writer.
class Pieces {
 public:
  // What the tail has up to the commit, newest first. Those who keep them keep their memory.
  Status get(Executor& executor, const TableTail& tail, uint32_t commit,
             std::vector<std::shared_ptr<IndexedSegment>>* newest_first);

 private:
  struct Piece {
    TableTail::Cursor begin, end;
    uint32_t last_commit;
    uint64_t rows;  // of the tail
    std::shared_ptr<IndexedSegment> segment;
  };

  std::mutex mutex_;
  std::vector<Piece> pieces_;  // oldest first
};

}  // namespace stride
