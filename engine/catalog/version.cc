#include "engine/catalog/version.h"

namespace stride {

uint64_t run_bytes(const SegmentList& segments, uint64_t run) {
  uint64_t bytes = 0;
  for (const auto& segment : segments)
    if (segment->record().run == run) bytes += segment->record().bytes;
  return bytes;
}

uint64_t count_runs(const SegmentList& segments) {
  uint64_t runs = 0;
  for (size_t i = 0; i < segments.size(); ++i)
    runs += i == 0 || segments[i]->record().run != segments[i - 1]->record().run;
  return runs;
}

Status check_identity(const Table& table, const std::shared_ptr<const DatabaseIdentity>& database) {
  const auto& its = TableParts::database(table);
  if (its == database) return {};
  if (!its) return Status::invalid("the table handle is empty");
  std::string of = its->path == database->path ? "an earlier opening of " : "the database ";
  return Status::invalid("table '" + table.name() + "' belongs to " + of + its->path + ", not to " +
                         (its->path == database->path ? "this one" : database->path))
      .with_remedy("open the table with the database that it is used with");
}

Result<const TableVersion*> Version::find(const Table& table) const {
  STRIDE_TRY(database->check_process());
  STRIDE_TRY(check_identity(table, database));
  if (const TableVersion* found = find(table.id())) return found;
  return Status(StatusCode::not_found, "table '" + table.name() + "' is not there")
      .with_file(database->path)
      .with_remedy("take the snapshot after the table is created and before it is dropped");
}

}  // namespace stride
