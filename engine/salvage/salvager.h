// Makes a new database of what is left of a damaged one: what salvage() (engine/salvage.h) does.
#pragma once

#include <string>

#include "engine/backup/copy_work.h"
#include "engine/salvage.h"
#include "storage/file.h"
#include "storage/status.h"

namespace stride {

// Precondition: the directory does not lie in the source.
Status salvage_database(FileSystem& fs, const std::string& source, const std::string& directory,
                        CopyCounters* counters, SalvageReport* report);

}  // namespace stride
