// Which rows came before: an exact set of byte strings, in memory and filled in bulk.
//
//   Result<RowSet> seen = RowSet::make();
//   std::vector<uint64_t> was_new((rows.size + 63) / 64);
//   Status s = seen->put(rows, was_new);   // bit i: row i was not there, nor before i
//
// WriteTransaction::put_if_absent() is the same for rows that are kept in a table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// Not thread-safe; a call uses several threads where it gains from them.
class STRIDE_API RowSet {
 public:
  // threads: as Options::threads.
  static Result<RowSet> make(unsigned threads = 0);
  RowSet(RowSet&&) noexcept;
  RowSet& operator=(RowSet&&) noexcept;
  ~RowSet();

  // Rows of any length. was_new: empty, or (rows.size + 63) / 64 words; bit i says whether row i
  // came for the first time. invalid_argument: another number of words, or offsets that descend.
  // resource_exhausted: nothing of this call is there, and what earlier calls put stays.
  Status put(const KeyColumn& rows, std::span<uint64_t> was_new);
  uint64_t size() const;  // different rows
  uint64_t memory_bytes() const;

 private:
  struct State;
  explicit RowSet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stride
