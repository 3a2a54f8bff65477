// The data sets by which the planner is judged and trained.
//
//   Result<TreeKeys> keys = make_planner_keys("timestamps", 1'000'000, seed, &parallel);
#pragma once

#include <cstdint>
#include <string>

#include "benchmark/datasets/tree_keys.h"

namespace stride::benchmark {

// Makes keys of a family that the planner has never seen in training: words, urls, ipv6, kmers (31
// bases as text), clustered (runs of consecutive integers), zipf_gaps and timestamps; or of u32,
// u64, fixed:BYTES, sequential, dates, digits, hex, verses, ipv4; trie:SEED (random alphabets at
// every byte), mixture:SEED (integers at several scales), paths:SEED (of files); last_bits,
// long_prefix and two, which are hard on a tree; or of the lines of a file. They are distinct, at
// most `keys`; fewer where a file has no more. invalid_argument: none of these.
Result<TreeKeys> make_planner_keys(const std::string& name, uint64_t keys, uint64_t seed,
                                   Parallel* parallel);

// For help texts.
std::string planner_key_names();

}  // namespace stride::benchmark
