#include "engine/catalog/table_index.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

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

// Sorted elements without those of `removed`, which are among them.
template <class T, class Less>
std::vector<T> difference(std::span<const T> sorted, std::vector<T> removed, const Less& less) {
  std::sort(removed.begin(), removed.end(), less);
  std::vector<T> result;
  result.reserve(sorted.size());
  auto from = sorted.begin();
  for (const T& one : removed) {
    auto to = std::lower_bound(from, sorted.end(), one, less);
    result.insert(result.end(), from, to);
    from = std::next(to);
  }
  result.insert(result.end(), from, sorted.end());
  return result;
}

std::vector<uint32_t> ids_of(std::span<const TableRecord* const> tables) {
  std::vector<uint32_t> ids;
  for (const TableRecord* table : tables) ids.push_back(table->id);
  return ids;
}

bool has_smaller_name(const TableRecord* a, const TableRecord* b) { return a->name < b->name; }

}  // namespace

TableIndex::TableIndex(const TableIndex& before, std::span<const TableRecord* const> created)
    : ids_(merged<uint32_t>(before.ids_, ids_of(created), std::less<uint32_t>())),
      by_name_(merged<const TableRecord*>(before.by_name_, {created.begin(), created.end()},
                                          has_smaller_name)) {}

TableIndex TableIndex::without(std::span<const TableRecord* const> dropped) const {
  TableIndex others;
  others.ids_ = difference<uint32_t>(ids_, ids_of(dropped), std::less<uint32_t>());
  others.by_name_ =
      difference<const TableRecord*>(by_name_, {dropped.begin(), dropped.end()}, has_smaller_name);
  return others;
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

size_t TableIndex::position_behind(uint32_t id) const {
  return static_cast<size_t>(std::upper_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
}

const TableRecord* TableIndex::find(std::string_view name) const {
  auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [](const TableRecord* table, std::string_view wanted) { return table->name < wanted; });
  return found != by_name_.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace stride
