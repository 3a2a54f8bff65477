#include "engine/catalog/table_list.h"

#include <algorithm>

namespace stride {

TableList TableList::with_replaced(std::span<const Replacement> replaced) const {
  TableList list = *this;
  for (auto from = replaced.begin(); from != replaced.end();) {
    const size_t chunk = from->first / chunk_tables;
    auto copy = std::make_shared<Chunk>(*chunks_[chunk]);
    for (; from != replaced.end() && from->first / chunk_tables == chunk; ++from)
      (*copy)[from->first % chunk_tables] = from->second;
    list.chunks_[chunk] = std::move(copy);
  }
  return list;
}

TableList TableList::with_added(std::span<const value_type> tables) const {
  TableList list = *this;
  list.add(tables);
  return list;
}

std::vector<TableList::value_type> TableList::all() const {
  std::vector<value_type> tables;
  tables.reserve(size_);
  for (const auto& chunk : chunks_) tables.insert(tables.end(), chunk->begin(), chunk->end());
  return tables;
}

void TableList::add(std::span<const value_type> tables) {
  if (tables.empty()) return;
  Chunk last;
  if (size_ % chunk_tables != 0) {
    last = *chunks_.back();
    chunks_.pop_back();
    size_ -= last.size();
  }
  while (!tables.empty()) {
    const size_t n = std::min(chunk_tables - last.size(), tables.size());
    last.insert(last.end(), tables.begin(), tables.begin() + static_cast<ptrdiff_t>(n));
    tables = tables.subspan(n);
    size_ += last.size();
    chunks_.push_back(std::make_shared<const Chunk>(std::move(last)));
    last = {};
  }
}

}  // namespace stride
