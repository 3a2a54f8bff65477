// Histories of transactions that read and append to lists, and the check that they are
// serializable.
//
// Each value is a list of the transactions that appended to it, so that the list that is there at
// the end tells the order of the writes of a key, and a list that was read tells which of them the
// reader had seen. The order in which transactions depend on each other must have no cycle (K.
// Kingsbury and P. Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations",
// VLDB 2020; A. Adya, "Weak Consistency", 1999, for the three kinds of dependency).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stride::test {

using ListKey = std::pair<uint32_t, std::string>;  // a table's number and the key
using List = std::vector<uint32_t>;                // transactions, by their numbers

struct RecordedTransaction {
  uint32_t number = 0;
  uint64_t begin = 0, end = 0;   // ticks of a clock that all threads share; unlike all others
  std::map<ListKey, List> read;  // without its own append; not there: an empty list
  std::vector<ListKey> appended;
};

// What is wrong with committed transactions that left `last`, in words; empty: nothing. Besides
// the dependencies, one that ended before another began comes before it.
std::string check_history(const std::vector<RecordedTransaction>& committed,
                          const std::map<ListKey, List>& last);

struct HistoryOptions {
  uint32_t threads = 4;
  uint32_t transactions = 0;  // of each thread
  uint32_t keys = 30;         // of each of the two tables
  uint64_t memtable_bytes = 64 << 10;
};

struct History {
  std::vector<RecordedTransaction> committed;
  std::map<ListKey, List> last;
  uint64_t conflicts = 0;
};

// Lets threads carry out transactions over two tables, while others merge the tables and replace
// rows in bulk.
History run_history(const HistoryOptions& options, uint64_t seed);

}  // namespace stride::test
