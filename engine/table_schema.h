// Where the schemas of tables are kept: in the table `.stride` of the same database, which also holds
// what the command line remembers of a table. The key of a table's schema is "schema:" and the
// table's id, its value the schema's text, so that a table that was dropped and made again has none of
// the one before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/catalog/version.h"
#include "storage/column.h"
#include "storage/schema.h"
#include "storage/status.h"

namespace stride {

inline constexpr std::string_view notes_table_name = ".stride";

std::string schema_key(uint32_t table_id);
// Null: the table has none. As of a version, and of the commit up to which it has rows (see
// VersionSet::current()). corruption: the table of notes is damaged, or has another text there.
Result<std::shared_ptr<const Schema>> read_schema(const std::shared_ptr<const Version>& version,
                                                  uint32_t commit, uint32_t table_id);
// The table of a name, with its schema. The same. not_found.
Result<Table> table_named(const std::shared_ptr<const Version>& version, uint32_t commit,
                          const std::string& name);
// invalid_argument: a table whose rows have one width, and values of another.
Status check_row_width(const Table& table, const ValueColumn& values);

}  // namespace stride
