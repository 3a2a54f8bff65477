// Brings the backup of a database up to date, and makes databases of backups.
#pragma once

#include <string>

#include "engine/backup/copy_work.h"
#include "engine/backup/frozen_database.h"

namespace stride {

// Copies the segments that are not there yet, each byte of them checked; logs and the manifest are
// written anew. The backup before this one is whole until this one is.
Status make_backup(const FrozenDatabase& frozen, const std::string& directory,
                   CopyCounters* counters, CopyReport* report);

Status restore_backup(FileSystem& fs, const std::string& backup, const std::string& directory,
                      CopyCounters* counters, CopyReport* report);

}  // namespace stride
