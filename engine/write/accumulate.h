// Numbers that are added to what a key has (WriteTransaction::accumulate): at the commit they
// become puts of the sums.
#pragma once

#include <memory>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/write/staging.h"

namespace stride {

// The sums of one table, for commits of a group that are carried out together, one after the other.
class DeltaSums {
 public:
  explicit DeltaSums(const Version& version);
  ~DeltaSums();

  // Takes the deltas out of the table's chunks, and puts a row behind these for each key that has
  // any: its sum. A delta is added to what its key has by then: from a row before it, from one of
  // `before`, from the version, or 0. before: null, or what commits before this one have staged,
  // without deltas; the same in each call, but for what was added at its end. Neither has ranges.
  // invalid_argument: a sum that does not fit, where that is an error. Whatever fails, only
  // `table` may have changed.
  Status resolve(const StagedTable* before, StagedTable* table);

 private:
  class EarlierRows;

  const Version& version_;
  std::unique_ptr<EarlierRows> earlier_;
};

}  // namespace stride
