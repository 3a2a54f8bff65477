// Changes of a table of prefixes while it is matched.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "benchmark/datasets/route_tables.h"
#include "engine/database.h"

namespace stride::benchmark {

// Random changes: half are new values, a quarter erases or puts back, and a quarter adds longer
// prefixes. The table must outlive them.
class Updates {
 public:
  Updates(const RouteTable& table, uint64_t changes, uint64_t seed);

  uint64_t size() const { return changes_.size(); }
  // Commits the n changes from `first` on in one transaction.
  Status commit(Database& database, const Table& table, uint64_t first, uint64_t n,
                Durability durability) const;
  // What the table has after the first n changes.
  std::map<std::string, std::string> routes(uint64_t n) const;

 private:
  struct Change {
    std::string key, value;
    bool erase;
  };
  void lengthen(std::string* key, bool bit) const;

  const RouteTable& table_;
  std::vector<Change> changes_;
};

}  // namespace stride::benchmark
