// The small interface of what takes one record at a time: a commit for each put.
//
//   std::unique_ptr<SmallStore> store = make(settings);
//   Status s = store->open();
//   s = store->put(key, value);        // as durable as the settings ask when it returns
//   s = store->get(key, &value);       // empty: it is not there
//   s = store->scan(key, 10, [&](Bytes k, Bytes v) { use(k, v); });
//   s = store->close();
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/options.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

struct SmallStoreSettings {
  std::string directory;  // exists, and is empty but for what the store has left there
  Durability durability = Durability::sync;
  unsigned threads = 1;       // at most so many use it at once
  uint64_t max_bytes = 0;     // of all keys and values
  bool transactions = false;  // transact() will be called
};

struct SmallRecord {
  Bytes key, value;
};

// Views, valid during the call.
using RowVisitor = std::function<void(Bytes key, Bytes value)>;
// Makes new values of some of those that were read.
using ValueChange = std::function<void(std::span<std::string> values)>;

// put(), put_all(), erase(), get() and scan() may be called from any thread.
class SmallStore {
 public:
  virtual ~SmallStore() = default;
  virtual Status open() = 0;
  virtual Status put(Bytes key, Bytes value) = 0;
  // Commits all of them at once.
  virtual Status put_all(std::span<const SmallRecord> records) = 0;
  // Erasing a key that is not there is fine.
  virtual Status erase(Bytes key) = 0;
  virtual Status get(Bytes key, std::string* value) = 0;
  // Visits that many rows in the order of their keys, or as many as there are, from the first key
  // that is not less than `from`, as they are at one moment.
  virtual Status scan(Bytes from, uint64_t count, const RowVisitor& visit) = 0;
  // One serializable transaction: reads the values of the keys, lets `change` make others of them,
  // and puts the first `written` of these. *conflict: others were in the way, nothing is there, and
  // it may be tried again. Requires SmallStoreSettings::transactions.
  virtual Status transact(std::span<const Bytes> keys, size_t written, const ValueChange& change,
                          bool* conflict) = 0;
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

// All of this build.
const std::vector<SmallStoreConfiguration>& small_stores();
// Those that a list names with commas between: an engine, one of its configurations, or all.
// invalid_argument begins with the name of the option.
Result<std::vector<SmallStoreConfiguration>> choose_small_stores(const std::string& option,
                                                                 const std::string& list);
// What the option's help says.
std::string small_stores_help();

}  // namespace stride::benchmark
