// The commands of stride-bench. A workload registers its own in its command.cc:
//
//   const bool map_registered = WorkloadCommands::add(
//       100, "map", "Weights mapping: T[R[i]] += S[i], with R in a table", &add_map,
//       &run_map_command);
#pragma once

#include "adapters/cli/command_registry.h"
#include "storage/status.h"

namespace stride::benchmark {

using WorkloadCommands = CommandRegistry<Status()>;

}  // namespace stride::benchmark
