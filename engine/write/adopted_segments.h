// Segments of other databases that a transaction makes part of a table: WriteTransaction::adopt().
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/options.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

class IndexedSegment;
class VersionSet;
struct DatabaseContext;
struct PendingEdit;
struct Version;

struct AdoptedSegment {
  std::shared_ptr<const Version> source;  // keeps the segment's file
  std::shared_ptr<IndexedSegment> segment;
};

// Sorts them by their keys. invalid_argument: two of them have keys in common, or one has keys
// between those of another one, so that they can't be one run.
Status sort_disjoint(const TableRecord& table, std::vector<AdoptedSegment>* segments);

// Copies them into this database's directory, each byte checked, and enters them into the edit as
// segments of the table, of a run 0. Needs no lock. corruption: one of them is damaged. The edit
// removes what was copied unless it is applied.
Status copy_adopted(const DatabaseContext& context, VersionSet& versions, const TableRecord& table,
                    std::span<const AdoptedSegment> segments, Durability durability,
                    PendingEdit* pending);

}  // namespace stride
