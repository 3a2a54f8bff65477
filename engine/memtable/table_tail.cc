#include "engine/memtable/table_tail.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "engine/memtable/pieces.h"
#include "engine/memtable/tail_order.h"
#include "storage/checksum.h"

namespace stride {
namespace {

constexpr uint64_t first_block_bytes = 4096;

uint32_t hash_of(Bytes key) { return static_cast<uint32_t>(checksum(key) >> 32); }

uint32_t row_of(uint64_t word) { return static_cast<uint32_t>(word); }

bool equal(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace

TableTail::TableTail(std::shared_ptr<const TableRecord> table)
    : table_(std::move(table)),
      pieces_(std::make_unique<Pieces>()),
      order_(std::make_unique<TailOrder>()) {}
TableTail::~TableTail() {
  for (uint32_t i = 0; i < block_count_; ++i) std::free(blocks_[i]);
}

TailRow* TableTail::row(uint32_t id) const noexcept {
  return reinterpret_cast<TailRow*>(blocks_[id >> 16]->rows() + (id & 0xFFFF) * row_unit);
}

// Zeros, so that readers see where rows end.
void TableTail::add_block(uint64_t bytes) {
  if (block_count_ >= 1U << 16) throw std::bad_alloc();
  blocks_.reserve(block_count_);
  auto* made = static_cast<Block*>(std::calloc(1, sizeof(Block) + bytes));
  if (!made) throw std::bad_alloc();
  made->bytes = bytes;
  blocks_.set(block_count_++, made);
  bytes_ += bytes;
}

// Blocks grow, so that a table with few rows takes little memory. A row that is larger than any has
// one of its own.
TableTail::Place TableTail::take(uint64_t bytes, Place* place, bool grow) {
  for (;; *place = {place->block + 1, 0}) {
    if (grow && place->block == block_count_) {
      const uint64_t usual =
          std::min(first_block_bytes << std::min(place->block, 8U), max_block_bytes);
      add_block(std::max(usual, bytes + place->offset));
    }
    if (place->offset + bytes <= blocks_[place->block]->bytes && place->offset < max_block_bytes)
      break;
  }
  Place taken = *place;
  place->offset += bytes;
  return taken;
}

void TableTail::reserve_row(uint64_t key_bytes, uint64_t value_bytes) {
  newest_.reserve(reserved_rows_ + 1);
  Place place = reserved_end_;
  take(row_bytes(key_bytes, value_bytes), &place, /*grow=*/true);
  reserved_end_ = place;
  ++reserved_rows_;
}

// Blocks that were made stay for later rows. A row that is larger than any of them begins a new
// one, so that take() may find one too small that was made for another row.
void TableTail::drop_reserved() noexcept {
  reserved_end_ = end_;
  reserved_rows_ = 0;
}

void TableTail::insert(uint32_t commit, EntryKind kind, Bytes key, Bytes value) noexcept {
  Place place = take(row_bytes(key.size(), value.size()), &end_, /*grow=*/false);
  --reserved_rows_;
  const auto id = static_cast<uint32_t>(place.block << 16 | place.offset / row_unit);
  TailRow* made = row(id);
  made->value_bytes = static_cast<uint32_t>(value.size());
  made->key_bytes = static_cast<uint16_t>(key.size());
  made->kind = kind;
  auto* bytes = reinterpret_cast<std::byte*>(made + 1);
  if (!key.empty()) std::memcpy(bytes, key.data(), key.size());
  if (!value.empty()) std::memcpy(bytes + key.size(), value.data(), value.size());
  const uint32_t hash = hash_of(key);
  auto is_it = [&](uint64_t word) {
    if (!equal(row(row_of(word))->key(), key)) return false;
    made->older = row_of(word);  // before it is published
    return true;
  };
  made->commit.store(commit, std::memory_order_release);
  newest_.put(uint64_t{hash} << 32 | id, is_it);
  rows_.fetch_add(1, std::memory_order_relaxed);
  last_commit_.store(commit, std::memory_order_relaxed);
}

const TailRow* TableTail::find(Bytes key, uint32_t commit) const noexcept {
  const uint64_t word =
      newest_.find(hash_of(key), [&](uint64_t w) { return equal(row(row_of(w))->key(), key); });
  return word == 0 ? nullptr : row_at(row(row_of(word)), commit);
}

// Leaves a block only where it has seen a row behind it that it may return: all before that are
// there for good. Blocks that were reserved for rows that did not come may stay empty.
const TailRow* TableTail::Cursor::next(uint32_t commit) noexcept {
  uint64_t offset = offset_;
  for (uint32_t b = block_; Block* block = tail_->blocks_[b]; ++b, offset = 0) {
    if (offset + sizeof(TailRow) > block->bytes) continue;
    auto* row = reinterpret_cast<const TailRow*>(block->rows() + offset);
    const uint32_t its_commit = row->commit.load(std::memory_order_acquire);
    if (its_commit == 0) continue;
    if (its_commit > commit) return nullptr;
    block_ = b;
    offset_ = offset + row_bytes(row->key_bytes, row->value_bytes);
    return row;
  }
  return nullptr;
}

}  // namespace stride
