// Counts how often each key of a block comes, where most come several times.
//
//   RepeatedKeys repeated;
//   if (repeated.count(keys)) ...   // of a a a b: rows() is {0, 3} and times() is {3, 1}
#pragma once

#include <cstdint>
#include <vector>

#include "storage/column.h"

namespace stride::cli {

// Not thread-safe; memory is kept between calls.
class RepeatedKeys {
 public:
  // False: too many keys are different for a table that stays in a core's cache, or most are, and
  // to look for others costs more than it saves. What the other calls return is nothing then.
  bool count(const KeyColumn& keys);
  // The rows in which a key comes for the first time, ascending.
  const std::vector<uint32_t>& rows() const { return rows_; }
  // How often the key of each of them comes.
  const std::vector<uint32_t>& times() const { return times_; }

 private:
  struct Slot {
    uint32_t hash, place;  // place: from 1 on; 0: there is none
  };
  std::vector<Slot> slots_;
  std::vector<uint32_t> rows_, times_;
};

}  // namespace stride::cli
