#include "engine/memtable/table_tail.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "engine/memtable/pieces.h"
#include "engine/memtable/tail_order.h"
#include "storage/checksum.h"

namespace stride {
namespace {

constexpr uint64_t first_block_bytes = 4096;
constexpr unsigned offset_bits = 48;

uint32_t hash_of(uint64_t key_checksum) { return static_cast<uint32_t>(key_checksum >> 32); }

uint32_t row_of(uint64_t word) { return static_cast<uint32_t>(word); }

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
// one of its own. A row's place in its block is 16 bits.
TableTail::Place TableTail::reserve(uint64_t rows, uint64_t bytes) {
  newest_.reserve(reserved_rows_ + rows);
  const uint64_t starts_within = rows == 1 ? row_unit : bytes;
  for (Place place = reserved_end_;; place = {place.block + 1, 0}) {
    if (place.block == block_count_) {
      const uint64_t usual =
          std::min(first_block_bytes << std::min(place.block, 8U), max_block_bytes);
      add_block(std::max(usual, bytes + place.offset));
    }
    if (place.offset + bytes > blocks_[place.block]->bytes ||
        place.offset + starts_within > max_block_bytes)
      continue;
    reserved_end_ = {place.block, place.offset + bytes};
    reserved_rows_ += rows;
    return place;
  }
}

// Blocks that were made stay for later rows. A row that is larger than any of them begins a new
// one, so that reserve() may find one too small that was made for another row.
void TableTail::drop_reserved() noexcept {
  reserved_end_ = end_;
  reserved_rows_ = 0;
}

void TableTail::keep_reserved(uint64_t new_keys, uint32_t commit) noexcept {
  newest_.count(new_keys);
  // The first call of those that keep the rows of a group: those before it are published.
  if (end_.block != reserved_end_.block || end_.offset != reserved_end_.offset)
    recent_.store(uint64_t{end_.block} << offset_bits | end_.offset, std::memory_order_release);
  rows_.store(rows() + reserved_rows_, std::memory_order_relaxed);
  last_commit_.store(commit, std::memory_order_relaxed);
  end_ = reserved_end_;
  reserved_rows_ = 0;
}

bool TableTail::insert(Place* place, uint32_t commit, EntryKind kind, Bytes key,
                       Bytes value) noexcept {
  const auto id = static_cast<uint32_t>(place->block << 16 | place->offset / row_unit);
  place->offset += row_bytes(key.size(), value.size());
  TailRow* made = row(id);
  made->value_bytes = static_cast<uint32_t>(value.size());
  made->key_bytes = static_cast<uint16_t>(key.size());
  made->kind = kind;
  auto* bytes = reinterpret_cast<std::byte*>(made + 1);
  if (!key.empty()) std::memcpy(bytes, key.data(), key.size());
  if (!value.empty()) std::memcpy(bytes + key.size(), value.data(), value.size());
  made->commit.store(commit, std::memory_order_release);
  return newest_.put(uint64_t{hash_of(checksum(key))} << 32 | id, [&](uint64_t word) {
    TailRow* there = row(row_of(word));
    if (!equal(there->key(), key)) return GrowingTable::Met::another;
    if (there->commit.load(std::memory_order_relaxed) > commit) {
      insert_behind(there, made, id);
      return GrowingTable::Met::kept;
    }
    made->older.store(row_of(word), std::memory_order_relaxed);  // before it is published
    return GrowingTable::Met::replaced;
  });
}

// A later commit of the same group was inserted earlier. Nobody may see either of them yet.
void TableTail::insert_behind(TailRow* newer, TailRow* made, uint32_t id) noexcept {
  const uint32_t commit = made->commit.load(std::memory_order_relaxed);
  for (;;) {
    uint32_t next = newer->older.load(std::memory_order_acquire);
    TailRow* following = next ? row(next) : nullptr;
    if (following && following->commit.load(std::memory_order_relaxed) > commit) {
      newer = following;
      continue;
    }
    made->older.store(next, std::memory_order_relaxed);
    if (newer->older.compare_exchange_weak(next, id, std::memory_order_release)) return;
  }
}

const TailRow* TableTail::find(Bytes key, uint32_t commit) const noexcept {
  return find(checksum(key), key, commit);
}

const TailRow* TableTail::find(uint64_t key_checksum, Bytes key, uint32_t commit) const noexcept {
  const uint64_t word = newest_.find(hash_of(key_checksum),
                                     [&](uint64_t w) { return equal(row(row_of(w))->key(), key); });
  return word == 0 ? nullptr : row_at(row(row_of(word)), commit);
}

void TableTail::prefetch_find(uint64_t key_checksum) const noexcept {
  newest_.prefetch_find(hash_of(key_checksum));
}

TableTail::Cursor TableTail::recent() const noexcept {
  const uint64_t place = recent_.load(std::memory_order_acquire);
  Cursor cursor(*this);
  cursor.block_ = static_cast<uint32_t>(place >> offset_bits);
  cursor.offset_ = place & ((uint64_t{1} << offset_bits) - 1);
  return cursor;
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
