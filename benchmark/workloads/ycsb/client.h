// One thread of a run: draws operations and keys, carries them out, and checks every answer.
//
//   YcsbClient client(&store, &records, options, thread);
//   YcsbCall call;
//   Status s = client.run(number_of_the_operation, &call);
//   histogram[call.operation].record(call.nanoseconds);
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/zipf.h"
#include "benchmark/harness/random_bits.h"
#include "benchmark/peers/small_store.h"
#include "benchmark/workloads/ycsb/mix.h"
#include "benchmark/workloads/ycsb/records.h"

namespace stride::benchmark {

using YcsbClock = std::chrono::steady_clock;

struct YcsbCall {
  Operation operation = Operation::read;
  uint64_t nanoseconds = 0;  // that the store took; what is checked afterwards does not count
  YcsbClock::time_point end;
};

struct YcsbClientOptions {
  YcsbMix mix;
  KeyChoice keys;
  uint32_t max_scan_rows = 100;
  uint64_t seed = 1;
};

// Draws the records that operations are about. For one thread.
class RecordChooser {
 public:
  RecordChooser(const YcsbClientOptions& options, const YcsbRecords& records);
  // Operation `number` of all threads; only a workload that rewrites depends on it.
  uint64_t draw(uint64_t number, uint64_t random_bits);

 private:
  const YcsbClientOptions& options_;
  const YcsbRecords& records_;
  // A theta of 0 where it is not used: cheap to make.
  ScrambledZipf zipf_;
  LatestZipf latest_;
};

class YcsbClient {
 public:
  // What is given has to outlive it.
  YcsbClient(SmallStore* store, YcsbRecords* records, const YcsbClientOptions& options,
             unsigned thread);

  // corruption: a wrong answer. resource_exhausted: there is no room for what is to be inserted.
  Status run(uint64_t number, YcsbCall* call);

 private:
  Status read(uint64_t record, YcsbCall* call);
  Status update(uint64_t record, YcsbCall* call);
  Status insert(YcsbCall* call);
  Status scan(uint64_t record, uint64_t rows, YcsbCall* call);
  Status read_modify_write(uint64_t record, YcsbCall* call);
  uint64_t random_bits() { return random_word(seed_, random_count_++); }

  SmallStore* const store_;
  YcsbRecords* const records_;
  const YcsbClientOptions& options_;
  RecordChooser chooser_;
  uint64_t seed_, random_count_ = 0;
  std::string value_;
};

// Scans all records of a store that no one writes to, and checks that each is there.
Status check_all_records(SmallStore* store, const YcsbRecords& records);

}  // namespace stride::benchmark
