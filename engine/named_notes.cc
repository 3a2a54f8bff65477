#include "engine/named_notes.h"

#include <string_view>

#include "engine/snapshot.h"
#include "engine/snapshot_version.h"
#include "engine/table_schema.h"

namespace stride {
namespace {

constexpr std::string_view schema_kind = "schema:";  // what follows is an id

}  // namespace

Status read_named_notes(const std::shared_ptr<const Version>& version, uint32_t commit,
                        const std::string& table, std::vector<NamedNote>* notes) {
  const TableVersion* there = version->find_name(notes_table_name);
  if (!there) return {};
  const Table notes_table = TableParts::make(there->table, version->database, nullptr);
  auto scan = SnapshotVersion::make(version, commit, before_all_time).scan(notes_table);
  if (!scan.ok()) return scan.status();
  for (ScanBatch batch; scan->next(&batch);) {
    for (uint64_t i = 0; i < batch.keys.size; ++i) {
      const std::string_view key = as_text(batch.keys[i]);
      const std::string_view kind = key.substr(0, key.find(':') + 1);
      if (kind.empty() || kind == schema_kind || key.substr(kind.size()) != table) continue;
      notes->push_back({std::string(kind), std::string(as_text(batch.values[i]))});
    }
  }
  return scan->status();
}

}  // namespace stride
