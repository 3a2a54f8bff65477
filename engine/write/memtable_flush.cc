#include "engine/write/memtable_flush.h"

#include "engine/build/run_builder_body.h"
#include "engine/memtable/memtable.h"
#include "engine/memtable/tail_order.h"
#include "engine/memtable/tail_rows.h"

namespace stride {

template Status RunBuilder::build(const TailRows&, const TableRecord&, RunFilters, Durability,
                                  PendingEdit*);

// Rows of tables that have been dropped meanwhile go with them.
Result<uint64_t> MemtableFlush::build(const Version& version, PendingEdit* pending) {
  if (version.sealed.empty()) return uint64_t{0};
  const SealedMemtable& oldest = version.sealed.back();
  for (const auto& tail : oldest.rows->tails()) {
    const TableVersion* table = version.find(tail->table()->id);
    if (!table) continue;
    auto run = tail->order().get_one(*context_.executor, *tail, oldest.rows->visible());
    if (!run.ok()) return run.status();
    if (!*run) continue;
    TailRows rows((*run)->rows());
    const bool is_lowest =
        table->segments.empty() || (*table->segments.rbegin())->record().run > oldest.run;
    if (is_lowest) rows.drop_tombstones();
    const RunFilters filters = is_lowest ? RunFilters::none : RunFilters::build;
    if (rows.size() > 0)
      STRIDE_TRY(builder_.build(rows, *table->table, filters, Durability::sync, pending));
  }
  for (SegmentRecord& added : pending->edit.added) added.run = oldest.run;
  return oldest.run;
}

Status MemtableFlush::install(uint64_t run, PendingEdit* pending) {
  auto version = versions_.current();
  pending->drop_segments_of_missing_tables(*version);
  pending->only_moves_rows = true;
  pending->flushed_run = run;
  for (const LogRecord& log : versions_.logs())
    if (log.run == run) pending->edit.removed_logs.push_back(log.number);
  STRIDE_TRY(versions_.apply(*version, pending, Durability::sync));
  for (uint64_t log : pending->edit.removed_logs) unsynced_.drop_log(log);
  return {};
}

}  // namespace stride
