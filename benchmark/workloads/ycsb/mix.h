// The YCSB core workloads (B. F. Cooper, A. Silberstein, E. Tam, R. Ramakrishnan, R. Sears,
// "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010), and one that rewrites all records.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/status.h"

namespace stride::benchmark {

enum class Operation : uint8_t { read, update, insert, scan, read_modify_write };
inline constexpr size_t operation_kinds = 5;
// "read", ..., "rmw"
const char* operation_name(Operation operation);

struct YcsbMix {
  std::string name;                               // "A"
  std::string description;                        // one line for --help
  std::array<uint32_t, operation_kinds> percent;  // of each Operation
  bool reads_latest = false;                      // its standard distribution is that of latest
  bool rewrites = false;  // updates each record once a round, in random order

  uint32_t percent_of(Operation operation) const { return percent[static_cast<size_t>(operation)]; }
  bool inserts() const { return percent_of(Operation::insert) > 0; }
  // random_bits decide.
  Operation draw(uint64_t random_bits) const;
};

// A to F, and "rewrite".
const std::vector<YcsbMix>& ycsb_mixes();
// "A,c" or "all", each once. invalid_argument: an unknown name, or none.
Result<std::vector<YcsbMix>> choose_ycsb_mixes(const std::string& list);

enum class KeyDistribution : uint8_t { uniform, zipf, latest };

struct KeyChoice {
  KeyDistribution distribution = KeyDistribution::zipf;
  double theta = 0.99;  // of zipf and latest

  // "uniform", "zipf:0.99", "latest:0.99"
  std::string to_string() const;
};

// "uniform", "zipf", "zipf:0.5", "latest" or "latest:0.5"; theta is from 0 to 1 (left out).
Result<KeyChoice> parse_key_choice(const std::string& text);

}  // namespace stride::benchmark
