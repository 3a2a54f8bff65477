#include "engine/write/round_sums.h"

#include "engine/memtable/snapshot_state.h"
#include "engine/write/range_erase.h"

namespace stride {

Status RoundSums::resolve(const StagedTables& before, std::vector<StagedTable>* staged) {
  for (StagedTable& table : *staged) {
    if (!table.has_deltas()) continue;
    const uint32_t id = table.table->id;
    auto found = before.find(id);
    const StagedTable* earlier = found == before.end() ? nullptr : &found->second;
    auto view = views_.find(id);
    if (view == views_.end()) {
      auto made = with_newest_rows(version_, {&id, 1});
      if (!made.ok()) return made.status();
      view = views_.emplace(id, std::move(*made)).first;
    }
    STRIDE_TRY(expand_ranges(view->second, earlier, max_tombstones_, &table));
    // No deltas come behind it in this round (fits_behind()).
    if (!table.erased.empty()) {
      auto rest = with_erased_rows(view->second, table);
      STRIDE_TRY(DeltaSums(*rest).resolve(earlier, &table));
      continue;
    }
    DeltaSums& sums = sums_.try_emplace(id, *view->second).first->second;
    STRIDE_TRY(sums.resolve(earlier, &table));
  }
  return {};
}

}  // namespace stride
