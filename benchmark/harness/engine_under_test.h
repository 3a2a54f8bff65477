// The small interface that every engine of a comparison has: StrideDB, its peers, and the plain
// data structures that are no database.
//
//   std::unique_ptr<EngineUnderTest> engine = make(settings);
//   Status s = engine->open();
//   s = engine->write(records);        // F flows, F threads, a transaction each; then durable
//   s = engine->read(check);           // all records in the order of their keys, on this thread
//   s = engine->lookup(keys, &result);
//   s = engine->close();
//
// The records lie in memory, in columns, before any clock starts: an engine that takes columns gets
// slices of them, one that takes records gets them one after the other. Looked up values are copied
// into one column of the caller, by every engine; refer() copies nothing, where an engine has it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/harness/expected.h"
#include "benchmark/harness/records.h"
#include "engine/options.h"
#include "engine/snapshot.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

// Row i of the values belongs to query i.
using LookupResult = GetResult;

struct EngineSettings {
  std::string directory;  // exists; an engine that finds nothing in it starts a database there
  unsigned threads = 1;   // for what an engine does on several cores
  Durability durability = Durability::sync;
  // What is going to be written, for engines that have to know.
  uint32_t key_width = 0;  // 0: of any length
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint64_t longest_value = 0;
  Options stride;  // of StrideDB alone; what has a member above is not looked at
};

// Calls come from one thread, unless has_many_callers(). After a failure only close() is called.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;
  // Also after close(), to reopen what is there.
  virtual Status open() = 0;
  // Returns once all flows are as durable as the settings ask.
  virtual Status write(const Records& records) = 0;
  virtual Status read(ReadCheck& check) = 0;
  virtual Status read(FullCheck& check) = 0;
  virtual Status lookup(const KeyColumn& queries, LookupResult* result) = 0;
  // Whether lookup() and refer() may be called from several threads at once, after one such call.
  virtual bool has_many_callers() const { return false; }
  // References to the values. unavailable unless gives_references().
  virtual bool gives_references() const { return false; }
  virtual Status refer(const KeyColumn&, FindResult*) {
    return Status(StatusCode::unavailable, "this engine gives no references to its values");
  }
  virtual Status close() = 0;
  // What executes batches, as far as is known by now.
  virtual std::string backend() const { return "host"; }
};

// One row of a comparison.
struct EngineConfiguration {
  std::string engine;         // "rocksdb"
  std::string configuration;  // "ingest"
  std::string description;    // one line for --help
  bool is_database = true;    // false: shown for reference, and no peer to be compared with
  bool numbers_only = false;  // takes only 8-byte keys
  std::function<std::unique_ptr<EngineUnderTest>(const EngineSettings&)> make = {};

  std::string name() const { return engine + ":" + configuration; }
};

// Calls write(flow) for each flow on a thread of its own; the first failure.
Status write_flows(const Records& records, const std::function<Status(const Flow&)>& write);

}  // namespace stride::benchmark
