// COSTS: what reads of memory cost the backends of the machine where a database lies, by which
// trees are planned (gpu/access_costs.h). A line for each backend: its name, a tab, and the costs.
#pragma once

#include <map>
#include <string>

#include "gpu/access_costs.h"
#include "storage/file.h"
#include "storage/status.h"

namespace stride {

using BackendCosts = std::map<std::string, AccessCosts>;

// Nothing where there is no such file, or what it has is none of ours: it only makes plans better.
BackendCosts read_costs(FileSystem& fs, const std::string& directory);
// Replaces the file as a whole.
Status write_costs(FileSystem& fs, const std::string& directory, const BackendCosts& costs);

}  // namespace stride
