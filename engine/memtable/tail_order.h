// The order of a table's newest rows, for those who scan them while others are added.
//
// Rows are sorted behind the commits, and what is left when somebody wants to read them in order.
// Each run has the rows of some commits, one after the other, and belongs to a level by its size.
// There is one run a level at most, so that a scan visits few, and a row is merged few times.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/device/executor.h"
#include "engine/memtable/sorted_run.h"
#include "engine/memtable/table_tail.h"
#include "storage/status.h"

namespace stride {

// Thread-safe. Those who want the order wait for each other, and never for the writer.
class TailOrder {
 public:
  // Immutable.
  struct Runs {
    explicit Runs(const TableTail& tail) : end(tail) {}
    std::vector<std::shared_ptr<const SortedRun>> newest_first;
    uint32_t last_commit = 0;  // whose rows they have
    uint64_t tail_rows = 0;    // so many rows of the tail, older ones of the same keys included
    TableTail::Cursor end;     // behind these
  };

  // Has the newest row of each key up to the commit, which is visible, or later ones that lead to
  // it (TableTail::row_at()).
  Result<std::shared_ptr<const Runs>> get(Executor& executor, const TableTail& tail,
                                          uint32_t commit);
  // The same as one run; null: there are no rows.
  Result<std::shared_ptr<const SortedRun>> get_one(Executor& executor, const TableTail& tail,
                                                   uint32_t commit);
  // How many of the tail's rows are in no run.
  uint64_t unsorted(const TableTail& tail);

 private:
  std::mutex mutex_;
  std::shared_ptr<const Runs> runs_;  // null: none were asked for
};

}  // namespace stride
