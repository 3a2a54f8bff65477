#include "adapters/cli/commands/top_rows.h"

#include <algorithm>

namespace stride::cli {

void TopRows::add(const TableCells& cells, Bytes key, Bytes value) {
  if (most_ == 0 || cells.is_null(column_)) return;
  const Bytes cell = cells[column_];
  if (heap_.size() < most_) {
    heap_.emplace_back();
  } else {
    if (!is_before(cell, key, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), before());
  }
  Row& row = heap_.back();
  row.cell.assign(as_text(cell));
  row.key.assign(as_text(key));
  row.value.assign(as_text(value));
  std::push_heap(heap_.begin(), heap_.end(), before());
}

const std::vector<TopRows::Row>& TopRows::sorted() {
  std::sort(heap_.begin(), heap_.end(), before());
  return heap_;
}

}  // namespace stride::cli
