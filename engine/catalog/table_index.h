// Finds the tables of a version by id and by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "storage/manifest.h"

namespace stride {

// Immutable. Versions that follow each other share one until a table is created, renamed or
// dropped. The versions keep the records alive.
class TableIndex {
 public:
  static constexpr size_t none = ~size_t{0};

  TableIndex() = default;
  // The tables of `before`, and the created ones. Costs a copy of two lists of numbers and
  // pointers, and a search for each created table.
  TableIndex(const TableIndex& before, std::span<const TableRecord* const> created);

  // The same without these tables, which are there. Costs the same.
  TableIndex without(std::span<const TableRecord* const> dropped) const;

  // The same tables, of which some have other names: `renamed` has the records that take the place
  // of those of the same ids.
  TableIndex with_renamed(std::span<const TableRecord* const> renamed) const;

  size_t size() const { return ids_.size(); }
  // The table's position among all, by ascending id, or `none`.
  size_t position(uint32_t id) const;
  // The position of the first table with a larger id; size() where there is none.
  size_t position_behind(uint32_t id) const;
  // Null: there is none of this name.
  const TableRecord* find(std::string_view name) const;

 private:
  std::vector<uint32_t> ids_;                // ascending
  std::vector<const TableRecord*> by_name_;  // by ascending name
};

}  // namespace stride
