// Which rows lie within the bounds of a scan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/scan.h"
#include "storage/status.h"

namespace stride {

// The smallest byte string above every string with this prefix; none where it is all 0xFF.
inline std::optional<std::string> prefix_end(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

// The ranks, among so many rows in key order, that lie within the options' bounds: [first, last).
// rank_of(key, past_equal, &rank) says how many keys are smaller or, if past_equal, not larger.
template <class RankOf>
Status scan_interval(uint64_t rows, const ScanOptions& options, const RankOf& rank_of,
                     uint64_t* first, uint64_t* last) {
  *first = 0;
  *last = rows;
  uint64_t rank;
  if (options.from) {
    STRIDE_TRY(rank_of(*options.from, !options.from_inclusive, &rank));
    *first = std::max(*first, rank);
  }
  if (options.to) {
    STRIDE_TRY(rank_of(*options.to, options.to_inclusive, &rank));
    *last = std::min(*last, rank);
  }
  if (options.prefix) {
    STRIDE_TRY(rank_of(*options.prefix, false, &rank));
    *first = std::max(*first, rank);
    if (auto end = prefix_end(*options.prefix)) {
      STRIDE_TRY(rank_of(*end, false, &rank));
      *last = std::min(*last, rank);
    }
  }
  *last = std::max(*first, *last);
  return {};
}

}  // namespace stride
