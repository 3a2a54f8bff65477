#include "engine/table_schema.h"

#include "engine/snapshot.h"
#include "engine/snapshot_version.h"

namespace stride {

std::string schema_key(uint32_t table_id) { return "schema:" + std::to_string(table_id); }

Result<std::shared_ptr<const Schema>> read_schema(const std::shared_ptr<const Version>& version,
                                                  uint32_t commit, uint32_t table_id) {
  const TableVersion* notes = version->find_name(notes_table_name);
  if (!notes) return std::shared_ptr<const Schema>();
  const Table table = TableParts::make(notes->table, version->database, nullptr);
  const Snapshot snapshot = SnapshotVersion::make(version, commit, before_all_time);
  auto text = snapshot.get(table, schema_key(table_id));
  if (!text.ok()) return text.status();
  if (!*text) return std::shared_ptr<const Schema>();
  auto schema = Schema::parse(as_text(**text));
  if (schema.ok()) return std::make_shared<const Schema>(std::move(*schema));
  return Status(StatusCode::corruption, "table '" + std::string(notes_table_name) + "', key '" +
                                            schema_key(table_id) +
                                            "': " + schema.status().message())
      .with_file(version->database->path)
      .with_remedy("put the table's schema there again, or erase the key: then values are bytes");
}

Result<Table> table_named(const std::shared_ptr<const Version>& version, uint32_t commit,
                          const std::string& name) {
  const TableVersion* found = version->find_name(name);
  if (!found)
    return Status(StatusCode::not_found, "no table '" + name + "'")
        .with_file(version->database->path)
        .with_remedy("create it, or list the tables there are");
  auto schema = read_schema(version, commit, found->table->id);
  if (!schema.ok()) return schema.status();
  return TableParts::make(found->table, version->database, std::move(*schema));
}

Status check_row_width(const Table& table, const ValueColumn& values) {
  const Schema& schema = table.schema();
  if (!schema.has_values() || !schema.is_fixed()) return {};
  auto check = [&](uint64_t row, uint64_t bytes) {
    if (bytes == schema.fixed_bytes()) return Status();
    return Status::invalid("row " + std::to_string(row) + " has a value of " +
                           std::to_string(bytes) + " bytes, and rows of table '" + table.name() +
                           "' have " + std::to_string(schema.fixed_bytes()))
        .with_remedy("make rows of the schema's columns, with put() or RowWriter");
  };
  if (values.is_fixed()) return values.size ? check(0, values.width) : Status();
  for (uint64_t row = 0; row < values.size; ++row)
    STRIDE_TRY(check(row, values.offsets[row + 1] - values.offsets[row]));
  return {};
}

}  // namespace stride
