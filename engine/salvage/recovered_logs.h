// Writes the rows of logs that can be read as logs of a new database.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/salvage/database_survey.h"
#include "storage/file.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

struct RecoveredLogs {
  std::vector<LogRecord> records;     // what the new manifest has of them
  std::map<uint32_t, uint64_t> rows;  // by table
  uint64_t unfit_rows = 0;            // which their table would not take
};

// Writes each log, synced, to path_of(its number). Rows of tables that the survey does not have are
// given one there: as `table-3`, where the manifest names the log, else as `log-of-table-3`.
Status recover_logs(FileSystem& fs, DatabaseSurvey* survey,
                    const std::function<std::string(uint64_t)>& path_of, RecoveredLogs* recovered);

}  // namespace stride
