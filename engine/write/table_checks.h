// Whether the tables are there that a transaction changes, and the names free that it gives.
#pragma once

#include <vector>

#include "engine/catalog/version.h"
#include "engine/write/staging.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// already_exists: a table of that name has come meanwhile.
Status check_not_there(const Version& version, const TableRecord& created);
// not_found: the table has gone.
Status check_there(const Version& version, const TableRecord& table);
// As both, for all that a transaction creates, renames and changes. not_found also where a table to
// be renamed has another name by now.
Status check_tables(const Version& version, const Staging& staging,
                    const std::vector<StagedTable>& staged);

}  // namespace stride
