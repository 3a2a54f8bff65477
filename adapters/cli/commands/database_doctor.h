// What stride doctor says about a database.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/context.h"
#include "engine/diagnosis.h"

namespace stride::cli {

// Whether there is one, whole or not.
bool is_database(const Context& context, const std::string& path);
// Prints what diagnose() finds, and what this user may do and has room for there. Fails where
// something is unusual.
ExitStatus examine_database(Context* context, const std::string& path);

ExitStatus print_findings(Context* context, const std::vector<Finding>& findings);

}  // namespace stride::cli
