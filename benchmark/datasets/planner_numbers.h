// Families of 64-bit numbers for the planner that are drawn on all cores, up to a billion and more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "benchmark/datasets/key_columns.h"
#include "benchmark/harness/parallel.h"

namespace stride::benchmark {

// clustered: runs of consecutive numbers of random lengths that begin anywhere. zipf_gaps: each is
// greater than the one before by a gap of Zipf's law (exponent 1, up to 2^40), modulo 2^64.
// timestamps: nanoseconds since 1970 of events that come in bursts, over a month. Big-endian and
// ascending; equal numbers are left out. Nothing: the name is none of these.
std::optional<OwnedColumn> make_planner_numbers(const std::string& name, uint64_t keys,
                                                uint64_t seed, Parallel* parallel);

}  // namespace stride::benchmark
