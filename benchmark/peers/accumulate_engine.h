// The small interface of what adds deltas to 64-bit integers by key: StrideDB, RocksDB's merge
// operator, and a hash table.
//
//   std::unique_ptr<AccumulateEngine> engine = make(settings);
//   Status s = engine->open();
//   s = engine->load(keys, numbers);       // the first number of each key
//   s = engine->accumulate(keys, deltas);  // number of keys[i] += deltas[i]; then durable
//   s = engine->read(&keys, &numbers);     // all of them
//   s = engine->close();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/options.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

struct AccumulateSettings {
  std::string directory;  // exists, and is empty
  unsigned threads = 1;   // for what an engine does on several cores
  Durability durability = Durability::sync;
  uint64_t batch = 0;                            // deltas of one transaction of StrideDB; 0: all
  BackendKind backend = BackendKind::automatic;  // of StrideDB
};

// Keys have 8 bytes; numbers are signed, and wrap. Calls come from one thread.
class AccumulateEngine {
 public:
  virtual ~AccumulateEngine() = default;
  virtual Status open() = 0;
  virtual Status load(const KeyColumn& keys, std::span<const int64_t> numbers) = 0;
  // Returns once all is as durable as the settings ask.
  virtual Status accumulate(const KeyColumn& keys, std::span<const int64_t> deltas) = 0;
  // Appends each key, as it lies in memory, and its number, in any order.
  virtual Status read(BulkVector<uint64_t>* keys, BulkVector<int64_t>* numbers) = 0;
  virtual Status close() = 0;
};

struct AccumulateConfiguration {
  std::string engine;         // "rocksdb"
  std::string configuration;  // "merge"
  std::string description;    // one line for --help
  bool is_database = true;
  std::unique_ptr<AccumulateEngine> (*make)(const AccumulateSettings& settings) = nullptr;

  std::string name() const { return engine + ":" + configuration; }
};

inline int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace stride::benchmark
