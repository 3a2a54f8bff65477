// Under which options, on which file system and with how many reopenings a history runs.
#pragma once

#include <cstdint>
#include <string>

#include "engine/options.h"

namespace stride::test::metamorphic {

struct OptionSet {
  enum class Device : uint8_t { none, fake, real };

  uint64_t memtable_bytes = 0;
  uint64_t memory_limit_bytes = 0;
  uint64_t max_range_tombstones = 4096;
  unsigned threads = 1;
  TreeOptions tree;
  Device device = Device::none;
  int reopen_every = 0;  // so many operations; 0: never
  bool on_disk = false;  // else in memory
  bool background_work = false;
  bool closes = true;  // before it is opened again, or leaves that to the destructor

  Options options() const;
};

OptionSet make_option_set(uint64_t seed);
std::string describe(const OptionSet& set);
// The plainest that there is, to which those are brought that fail.
inline OptionSet plain_options() { return {}; }

}  // namespace stride::test::metamorphic
