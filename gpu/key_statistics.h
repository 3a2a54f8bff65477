// What a sorted key column looks like, as far as the choice of a tree for it goes.
//
//   KeyStatistics statistics;
//   backend->measure_keys(column, {}, &statistics);
//   PlannedTree plan = plan_tree(statistics, target);     // tree_planner.h
//
// A tree puts keys that begin with the same bits into one node. So all that it makes of a key
// follows from how many other keys share its first d bits, for each d, and that from how many bits
// it shares with those before and after it in the column, which become fewer with the distance. For
// some hundred keys, drawn evenly from all over the column, these are written down at distances
// that grow by factors, and at more of them where the bits become many fewer at once. The mean over
// them is what a random search meets; and a level has as many nodes as there are keys times the
// mean of 1 / (keys of the node), since each node is met as often as it has keys. Both hold for any
// list of strides, with and without path compression. Where all keys are sampled at all distances
// they are exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/column.h"
#include "storage/status.h"

namespace stride {

struct SampleOptions {
  uint32_t samples = 0;  // at most; 0: as many as are worth their time
  bool exact = false;    // all keys, and all distances: takes 8 bytes x keys x keys, for tests
};

struct KeyStatistics {
  static constexpr uint32_t head_words = 4;

  uint64_t keys = 0;
  uint64_t key_bytes = 0;
  uint32_t width = 0;        // of every key; 0: of many lengths
  uint32_t prefix_bits = 0;  // that all keys share
  // These describe each sampled key, in key order.
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> lengths;  // bytes
  std::vector<uint64_t> heads;    // head_words each: the bits after those that all keys share
  // Points: at a distance in ranks, how many bits past prefix_bits a sampled key shares with the
  // key so far before (after) it; same_bits: equal as bit strings. Distances ascend, and bits fall:
  // down to 0 if the column goes on so far. Those of sample i are [first[2 i], first[2 i + 1])
  // before it, and up to first[2 i + 2] after it.
  std::vector<uint32_t> first;
  std::vector<uint32_t> distances;
  std::vector<uint32_t> shared;

  uint32_t samples() const { return static_cast<uint32_t>(ranks.size()); }
  // Whether keys are searched as numbers (4 or 8 bytes each).
  bool are_numbers() const { return width == 4 || width == 8; }

  // For a file: little-endian, with a version.
  std::string serialize() const;
  // corruption: not what serialize() makes.
  static Result<KeyStatistics> parse(Bytes bytes);
};

// How many keys are sampled of so many, if nobody says.
uint32_t default_samples(uint64_t keys);

}  // namespace stride
