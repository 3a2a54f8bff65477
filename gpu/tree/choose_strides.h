// How the build of a tree asks for the strides that its options leave open.
#pragma once

#include <cstdint>
#include <functional>

#include "gpu/access_costs.h"
#include "gpu/key_statistics.h"
#include "gpu/tree_options.h"

namespace stride {

// Calls body for disjoint ranges that cover [0, n), on several threads.
using RunEach =
    std::function<void(uint64_t n, const std::function<void(uint64_t begin, uint64_t end)>& body)>;

// Fills in the strides, kinds and leaf capacity that options leave open, for a machine with these
// costs: with_strides() of the planner.
using PlanStrides = TreeOptions (*)(const KeyStatistics& statistics, const AccessCosts& costs,
                                    const TreeOptions& options, const RunEach& run_each);

// Does so for one backend.
using ChooseStrides =
    std::function<TreeOptions(const KeyStatistics& statistics, const TreeOptions& options)>;

}  // namespace stride
