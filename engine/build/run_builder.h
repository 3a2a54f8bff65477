// Builds the segments of one run, and enters them into an edit.
#pragma once

#include <cstdint>

#include "engine/build/row_source.h"
#include "engine/catalog/database_context.h"
#include "engine/catalog/pending_edit.h"
#include "engine/catalog/poison.h"
#include "engine/catalog/version_set.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

// Whether a run gets filters of its keys (storage/key_filter.h), which spare searches that go on to
// older runs. The oldest run of a table needs none: it holds most keys. Making them takes 6 to
// 15 ns of one core for each key.
enum class RunFilters : uint8_t { none, build };

// For commits and compactions; needs no lock. Whoever has a source of rows instantiates build() with
// run_builder_body.h.
class RunBuilder {
 public:
  RunBuilder(const DatabaseContext& context, VersionSet& versions, Poison& poison)
      : context_(context), versions_(versions), poison_(poison) {}

  // Makes a run of the rows: one segment, or, where that would need more memory than there is, or
  // more rows than a segment can have, several, one after the other. Their records' run is 0.
  // Prefix tables get no filters: a match does not search their segments.
  // Precondition: rows.size() > 0.
  template <class Rows>
  Status build(const Rows& rows, const TableRecord& table, RunFilters filters,
               Durability durability, PendingEdit* pending);

 private:
  // What segments may keep in memory still, beside memtables. Builds that go on at the same time do not know of each
  // other.
  uint64_t resident_budget(const PendingEdit& pending) const;
  template <class Rows>
  Status build_one(const RowRange<Rows>& rows, const TableRecord& table, RunFilters filters,
                   Durability durability, uint64_t resident_budget, PendingEdit* pending);

  const DatabaseContext& context_;
  VersionSet& versions_;
  Poison& poison_;
};

}  // namespace stride
