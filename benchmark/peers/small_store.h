// The small interface of what takes one record at a time: a commit for each put.
//
//   std::unique_ptr<SmallStore> store = make(settings);
//   Status s = store->open();
//   s = store->put(key, value);        // as durable as the settings ask when it returns
//   s = store->get(key, &value);       // empty: it is not there
//   s = store->close();
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/options.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

struct SmallStoreSettings {
  std::string directory;  // exists, and is empty but for what the store has left there
  Durability durability = Durability::sync;
  unsigned threads = 1;    // at most so many use it at once
  uint64_t max_bytes = 0;  // of all keys and values
};

// put() and get() may be called from any thread.
class SmallStore {
 public:
  virtual ~SmallStore() = default;
  virtual Status open() = 0;
  virtual Status put(Bytes key, Bytes value) = 0;
  virtual Status get(Bytes key, std::string* value) = 0;
  virtual Status close() = 0;
};

struct SmallStoreConfiguration {
  std::string engine;         // "rocksdb"
  std::string configuration;  // "tuned"
  std::string description;    // one line for --help
  std::unique_ptr<SmallStore> (*make)(const SmallStoreSettings& settings) = nullptr;

  std::string name() const { return engine + ":" + configuration; }
};

std::vector<SmallStoreConfiguration> stride_small_stores();
// Empty in a build without them.
std::vector<SmallStoreConfiguration> rocksdb_small_stores();
std::vector<SmallStoreConfiguration> lmdb_small_stores();

}  // namespace stride::benchmark
