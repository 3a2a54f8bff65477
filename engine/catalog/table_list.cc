#include "engine/catalog/table_list.h"

#include <algorithm>

namespace stride {

TableList TableList::with_replaced(std::span<const Replacement> replaced) const {
  TableList list = *this;
  for (auto from = replaced.begin(); from != replaced.end();) {
    const size_t chunk = chunk_of(from->first), begin = begins_[chunk];
    auto copy = std::make_shared<Chunk>(*chunks_[chunk]);
    for (; from != replaced.end() && from->first - begin < copy->size(); ++from)
      (*copy)[from->first - begin] = from->second;
    list.chunks_[chunk] = std::move(copy);
  }
  return list;
}

TableList TableList::without(std::span<const size_t> positions) const {
  TableList list;
  auto next = positions.begin();
  for (size_t c = 0; c < chunks_.size(); ++c) {
    const Chunk& chunk = *chunks_[c];
    const size_t begin = begins_[c], end = begin + chunk.size();
    if (next == positions.end() || *next >= end) {
      list.add_chunk(chunks_[c]);
      continue;
    }
    auto kept = std::make_shared<Chunk>();
    for (size_t i = begin; i < end; ++i) {
      const bool goes = next != positions.end() && *next == i;
      if (goes) ++next;
      if (!goes) kept->push_back(chunk[i - begin]);
    }
    list.add_chunk(std::move(kept));
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
  if (!chunks_.empty() && chunks_.back()->size() < chunk_tables) {  // what it has room for
    auto last = std::make_shared<Chunk>(*chunks_.back());
    const size_t n = std::min(chunk_tables - last->size(), tables.size());
    last->insert(last->end(), tables.begin(), tables.begin() + static_cast<ptrdiff_t>(n));
    tables = tables.subspan(n);
    size_ += n;
    chunks_.back() = std::move(last);
  }
  for (; !tables.empty(); tables = tables.subspan(std::min(chunk_tables, tables.size()))) {
    const auto piece = tables.first(std::min(chunk_tables, tables.size()));
    begins_.push_back(size_);
    chunks_.push_back(std::make_shared<const Chunk>(piece.begin(), piece.end()));
    size_ += piece.size();
  }
}

void TableList::add_chunk(std::shared_ptr<const Chunk> chunk) {
  if (chunk->empty()) return;
  const size_t tables = chunk->size();
  if (!chunks_.empty() && chunks_.back()->size() + tables <= chunk_tables / 2) {
    auto both = std::make_shared<Chunk>(*chunks_.back());
    both->insert(both->end(), chunk->begin(), chunk->end());
    chunks_.back() = std::move(both);
  } else {
    begins_.push_back(size_);
    chunks_.push_back(std::move(chunk));
  }
  size_ += tables;
}

}  // namespace stride
