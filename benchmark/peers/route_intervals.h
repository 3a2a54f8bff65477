// The yardstick of longest-prefix match: a plain binary search over the intervals that prefixes cut
// the addresses into, and the check of all other answers. Shares no code with the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "benchmark/harness/parallel.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

class RouteIntervals {
 public:
  // Ascending prefix keys (storage/prefix_key.h) of addresses of 32 or 128 bits.
  RouteIntervals(const KeyColumn& prefixes, uint32_t address_bits);

  // The rank of each address's longest prefix, or Location::absent.
  void match(const KeyColumn& addresses, Parallel* parallel, std::span<uint32_t> ranks) const;
  uint64_t size() const { return answers_.size(); }

 private:
  template <class Begins, class Number>
  void match_in(const Begins& begins, const Number& number, const KeyColumn& addresses,
                Parallel* parallel, std::span<uint32_t> ranks) const;

  uint32_t address_bits_;
  // Where intervals begin, the first at 0: of one of these.
  std::vector<uint32_t> narrow_;
  __extension__ using Wide = unsigned __int128;
  std::vector<Wide> wide_;
  std::vector<uint32_t> answers_;
};

}  // namespace stride::benchmark
