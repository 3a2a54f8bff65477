// All that is damaged of the files of a database.
#pragma once

#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/segment_list.h"
#include "engine/damage.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// Adds what is damaged of a table's segments, and what they are. Fails with what is no damage.
Status report_table(FileSystem& fs, Backend& backend, const TableRecord& table,
                    const SegmentList& segments, VerifyReport* report);
// Adds what is damaged of the logs. why: what verify_logs() has said of them.
Status report_logs(const DatabaseContext& context, const std::vector<LogRecord>& logs,
                   const Status& why, VerifyReport* report);

}  // namespace stride
