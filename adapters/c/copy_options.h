// What watches calls that copy whole databases.
#pragma once

#include "adapters/c/stridedb_backup.h"
#include "engine/backup.h"
#include "storage/status.h"

namespace stride::c {

// given: null, the defaults. invalid_argument: its size is none that there was.
Status read_copy_options(const stride_copy_options* given, CopyOptions* options);

}  // namespace stride::c
