// Copies of a whole database.
#pragma once

#include <string>

#include "adapters/cli/context.h"

namespace stride::cli {

// Makes a database in a new directory of what was backed up in another one.
ExitStatus restore_backup(Context* context, const std::string& backup, const std::string& database);

}  // namespace stride::cli
