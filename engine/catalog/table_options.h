// What the options of a table may be, and the record that a manifest keeps of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/options.h"
#include "engine/table.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// invalid_argument: no name that a table can have.
Status check_table_name(const std::string& name);
// invalid_argument: a name or options that no table can have.
Status check_table_options(const std::string& name, const TableOptions& options);
// Precondition: check_table_options() was ok.
std::shared_ptr<const TableRecord> make_table_record(uint32_t id, const std::string& name,
                                                     const TableOptions& options);
// The table, unless it was made with other options.
Result<Table> check_same_options(const Table& table, const TableOptions& options);

}  // namespace stride
