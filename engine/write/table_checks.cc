#include "engine/write/table_checks.h"

#include <unordered_set>

namespace stride {
namespace {

Status name_is_taken(const Version& version, const std::string& name) {
  return Status(StatusCode::already_exists,
                "there is a table '" + name + "' by now, which another one created or renamed")
      .with_file(version.database->path)
      .with_remedy("begin again, with open_table()");
}

Status check_renaming(const Version& version, const TableRenaming& renaming) {
  STRIDE_TRY(check_there(version, *renaming.from));
  const std::string& name = version.find(renaming.from->id)->table->name;
  if (name == renaming.from->name) return {};
  return Status(StatusCode::not_found,
                "table '" + renaming.from->name + "' has another name by now, '" + name + "'")
      .with_file(version.database->path)
      .with_remedy("begin again, with open_table()");
}

}  // namespace

Status check_not_there(const Version& version, const TableRecord& created) {
  return version.find_name(created.name) ? name_is_taken(version, created.name) : Status();
}

Status check_there(const Version& version, const TableRecord& table) {
  if (version.find(table.id)) return {};
  return Status(StatusCode::not_found,
                "table '" + table.name +
                    "' was dropped before the commit, or its creation was not committed")
      .with_file(version.database->path);
}

Status check_tables(const Version& version, const Staging& staging,
                    const std::vector<StagedTable>& staged) {
  std::unordered_set<uint32_t> created;
  auto check_name = [&](const std::string& name) {
    const TableVersion* there = version.find_name(name);
    return there && !staging.renames(there->table->id) ? name_is_taken(version, name) : Status();
  };
  for (const TableRenaming& renaming : staging.renamed()) {
    STRIDE_TRY(check_renaming(version, renaming));
    STRIDE_TRY(check_name(renaming.to->name));
  }
  for (const auto& table : staging.created()) {
    created.insert(table->id);
    STRIDE_TRY(check_name(table->name));
  }
  for (const StagedTable& t : staged) {
    if (!created.contains(t.table->id)) STRIDE_TRY(check_there(version, *t.table));
  }
  return {};
}

}  // namespace stride
