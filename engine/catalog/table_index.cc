#include "engine/catalog/table_index.h"

#include <algorithm>

namespace stride {
namespace {

// Sorted elements, with those of `added` where they belong. Compares only to find their places.
template <class T, class Less>
std::vector<T> merged(std::span<const T> sorted, std::vector<T> added, const Less& less) {
  std::sort(added.begin(), added.end(), less);
  std::vector<T> result;
  result.reserve(sorted.size() + added.size());
  auto from = sorted.begin();
  for (const T& one : added) {
    auto to = std::upper_bound(from, sorted.end(), one, less);
    result.insert(result.end(), from, to);
    result.push_back(one);
    from = to;
  }
  result.insert(result.end(), from, sorted.end());
  return result;
}

bool has_smaller_name(const TableRecord* a, const TableRecord* b) { return a->name < b->name; }

}  // namespace

TableIndex::TableIndex(const TableIndex& before, std::span<const TableRecord* const> created,
                       const std::unordered_set<uint32_t>& dropped) {
  std::vector<uint32_t> created_ids;
  for (const TableRecord* table : created) created_ids.push_back(table->id);
  ids_ = merged<uint32_t>(before.ids_, std::move(created_ids), std::less<uint32_t>());
  by_name_ = merged<const TableRecord*>(before.by_name_, {created.begin(), created.end()},
                                        has_smaller_name);
  if (dropped.empty()) return;
  std::erase_if(ids_, [&](uint32_t id) { return dropped.contains(id); });
  std::erase_if(by_name_, [&](const TableRecord* t) { return dropped.contains(t->id); });
}

TableIndex TableIndex::with_renamed(std::span<const TableRecord* const> renamed) const {
  std::unordered_set<uint32_t> ids;
  for (const TableRecord* table : renamed) ids.insert(table->id);
  TableIndex others = *this;
  std::erase_if(others.by_name_, [&](const TableRecord* t) { return ids.contains(t->id); });
  others.by_name_ = merged<const TableRecord*>(others.by_name_, {renamed.begin(), renamed.end()},
                                               has_smaller_name);
  return others;
}

size_t TableIndex::position(uint32_t id) const {
  auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (found == ids_.end() || *found != id) return none;
  return static_cast<size_t>(found - ids_.begin());
}

const TableRecord* TableIndex::find(std::string_view name) const {
  auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [](const TableRecord* table, std::string_view wanted) { return table->name < wanted; });
  return found != by_name_.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace stride
