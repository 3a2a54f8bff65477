// RocksDB as a peer of the benchmark.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/engine_under_test.h"

namespace stride::benchmark {

// defaults       DB::Open with default options, write batches of 1,000 records, the WAL synced at
//                the end of each flow
// ingest         all flows' records sorted, a file for each core, ingested together; memory-mapped,
//                uncompressed, with bloom filters and hash indexes in the blocks
// ingest_merged  the same; a batch's queries are sorted, and looked up by stepping an iterator
//                where they are dense, by MultiGet with sorted input where they are not
// cuckoo         memory-mapped cuckoo hash tables, its fastest format for point lookups (values
//                padded to one length, as it asks; only 8-byte keys)
//
// Empty in a build without RocksDB.
std::vector<EngineConfiguration> rocksdb_configurations();

// "release" or "packaged" (the distribution's, with assertions on); empty without RocksDB.
std::string rocksdb_build();

}  // namespace stride::benchmark
