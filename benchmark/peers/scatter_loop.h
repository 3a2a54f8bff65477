// T[R[i]] += S[i] as a plain loop on one thread.
#pragma once

#include "gpu/scatter_add.h"

namespace stride::benchmark {

// Precondition: the columns go together, in host memory, and all targets are below into.size.
void scatter_loop(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                  ScatterOperation operation);

}  // namespace stride::benchmark
