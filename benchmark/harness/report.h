// Results: rows for a file, and a table for the terminal.
//
//   std::vector<ResultRow> rows = medians(rows_of_all_repeats);
//   Status s = write_json(path, rows);
//   std::cout << comparison(rows);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/status.h"

namespace stride::benchmark {

// One phase of one configuration of one engine.
struct ResultRow {
  std::string workload;       // "sts"
  std::string engine;         // "stride", "rocksdb", ...
  std::string configuration;  // "defaults", ...
  std::string backend;        // what executed batches
  std::string phase;          // "write", "read", "lookup_1k", ...
  uint64_t records = 0;       // that the phase wrote, read or looked up
  double seconds = 0;
  uint64_t bytes_on_disk = 0;  // of the closed database
  // The most memory during the phase, less what the process held before the write phase: the
  // harness's own records. Mapped files count as far as they were in memory.
  uint64_t peak_rss_bytes = 0;
  std::string machine;
  bool is_database = true;                // false: for reference only, in no ratio to the best peer
  uint64_t raw_bytes = 0;                 // of the keys and values
  std::map<std::string, double> numbers;  // more columns: the workload's parameters
  std::map<std::string, std::string> texts;

  double records_per_second() const {
    return seconds > 0 ? static_cast<double>(records) / seconds : 0;
  }
  std::string engine_name() const { return engine + ":" + configuration; }
  // Looks the name up in `numbers`; 0 where there is none.
  double number_of(const std::string& name) const {
    auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  }
  // Looks the name up in `texts`; empty where there is none.
  std::string text_of(const std::string& name) const {
    auto found = texts.find(name);
    return found == texts.end() ? "" : found->second;
  }
};

// Keeps, for each engine, configuration and phase, the row with the median rate (the slower of the
// two in the middle), in the order of their first appearance.
std::vector<ResultRow> medians(const std::vector<ResultRow>& rows);

// The rows as a JSON list of objects, one a line.
std::string to_json(const std::vector<ResultRow>& rows);
Status write_json(const std::string& path, const std::vector<ResultRow>& rows);
Status write_text_file(const std::string& path, const std::string& text);

// A line for each engine and configuration with its rates, and below them StrideDB's ratio to the
// best peer and to each peer's defaults in each phase, and what percentage of their
// limit_per_second its rows reach, where they have one.
std::string comparison(const std::vector<ResultRow>& rows);

// As a person reads it: "lookup 1k", "secondary read", "kjv bible" (of lookup_kjv_bible).
std::string phase_title(const std::string& phase);

}  // namespace stride::benchmark
