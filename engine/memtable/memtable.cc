#include "engine/memtable/memtable.h"

#include "engine/catalog/reserve_one_more.h"
#include "engine/memtable/tail_order.h"

namespace stride {
namespace {

// Fewer are left to the next scan, which sorts them in some tenths of a millisecond.
constexpr uint64_t min_sorted_rows = 4096;

uint32_t hash_of(uint32_t table) { return table * 0x9E3779B9U; }

}  // namespace

const TableTail* Memtable::find(uint32_t table) const noexcept {
  auto is_it = [&](uint64_t word) {
    return by_number_[static_cast<uint32_t>(word) - 1]->table()->id == table;
  };
  const auto number = static_cast<uint32_t>(numbers_.find(hash_of(table), is_it));
  return number ? by_number_[number - 1] : nullptr;
}

Status Memtable::sort(Executor& executor) const {
  const uint32_t commit = visible();
  for (size_t i = 0; const TableTail* tail = by_number_[i]; ++i) {
    if (tail->order().unsorted(*tail) < min_sorted_rows) continue;
    auto sorted = tail->order().get(executor, *tail, commit);
    if (!sorted.ok()) return sorted.status();
  }
  return {};
}

TableTail& Memtable::tail(const std::shared_ptr<const TableRecord>& table) {
  if (const TableTail* there = find(table->id)) return const_cast<TableTail&>(*there);
  reserve_one_more(&tails_);
  by_number_.reserve(tails_.size());
  numbers_.reserve(1);
  auto made = std::make_unique<TableTail>(table);
  TableTail& result = *made;
  by_number_.set(tails_.size(), made.get());
  tails_.push_back(std::move(made));
  numbers_.put(uint64_t{hash_of(table->id)} << 32 | tails_.size(),
               [](uint64_t) { return GrowingTable::Met::another; });
  numbers_.count(1);
  return result;
}

uint64_t Memtable::bytes() const {
  uint64_t bytes = 0;
  for (const auto& tail : tails_) bytes += tail->bytes();
  return bytes;
}

}  // namespace stride
