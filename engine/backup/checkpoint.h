// Makes a database of another one's files, as other names of them.
#pragma once

#include <string>

#include "engine/backup/copy_work.h"
#include "engine/backup/frozen_database.h"

namespace stride {

// already_exists: the directory is there. Segments that can't be linked are copied, each byte of
// them checked.
Status make_checkpoint(const FrozenDatabase& frozen, const std::string& directory,
                       CopyCounters* counters, CopyReport* report);

}  // namespace stride
