// All engines that a program of the benchmark can compare.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "benchmark/harness/engine_under_test.h"

namespace stride::benchmark {

// Lists the engines of this build: StrideDB first, then its peers, then the plain data structures.
const std::vector<EngineConfiguration>& all_engines();

// "stride,rocksdb:ingest,lmdb": an engine's name means all its configurations. invalid_argument
// names what is unknown with all that is known, or what is not in this build with the package that
// brings it.
Result<std::vector<EngineConfiguration>> choose_engines(std::string_view list);

// The databases of this build, as a list for choose_engines.
std::string default_engines();

// StrideDB, of each other database of this build the configuration that is the fastest at bulk
// loads and batches of lookups, and a hash table.
std::string fastest_engines();

// A sentence for below a table where RocksDB was not built for speed; empty otherwise.
std::string rocksdb_note();

}  // namespace stride::benchmark
