// Chunks of staged rows.
#include <algorithm>
#include <cstring>
#include <new>

#include "engine/catalog/indexed_segment.h"
#include "engine/write/staging.h"

namespace stride {
namespace {

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// How many of rows [first, first + most) hold at most `bytes` bytes.
uint64_t rows_within(const Column& column, uint64_t first, uint64_t max_rows, uint64_t bytes) {
  if (column.is_fixed())
    return column.width ? std::min<uint64_t>(max_rows, bytes / column.width) : max_rows;
  const uint64_t* o = column.offsets + first;
  return std::upper_bound(o + 1, o + max_rows + 1, o[0] + bytes) - (o + 1);
}

void copy_offsets(uint64_t* to, uint64_t base, const Column& from, uint64_t first, uint64_t n) {
  if (from.is_fixed()) {
    for (uint64_t i = 1; i <= n; ++i) to[i] = base + i * from.width;
  } else {
    uint64_t shift = base - from.offsets[first];
    for (uint64_t i = 1; i <= n; ++i) to[i] = from.offsets[first + i] + shift;
  }
}

void copy_bytes(std::byte* to, const Column& from, uint64_t first, uint64_t n) {
  uint64_t begin = from.begin(first), bytes = from.begin(first + n) - begin;
  if (bytes) std::memcpy(to, from.data + begin, bytes);
}

}  // namespace

// Below this a mapping of its own costs more than the memory.
constexpr uint64_t max_small_bytes = 64 << 10;

StagedChunk::StagedChunk(uint32_t key_width, Capacity capacity)
    : key_width_(key_width), capacity_(capacity) {
  uint64_t offset_bytes = (capacity.rows + 1) * sizeof(uint64_t);
  uint64_t key_bytes = key_width ? capacity.rows * key_width : capacity.key_bytes;
  uint64_t bytes =
      offset_bytes * (key_width ? 1 : 2) + round_up(key_bytes, 64) + capacity.value_bytes;
  std::byte* p;
  if (bytes <= max_small_bytes) {
    small_memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    p = small_memory_.get();
  } else {
    auto memory = ReservedMemory::reserve(bytes);
    if (!memory.ok()) throw std::bad_alloc();
    memory_ = std::move(*memory);
    p = memory_.data();
  }
  value_offsets_ = reinterpret_cast<uint64_t*>(p);
  value_offsets_[0] = 0;
  p += offset_bytes;
  if (!key_width) {
    key_offsets_ = reinterpret_cast<uint64_t*>(p);
    key_offsets_[0] = 0;
    p += offset_bytes;
  }
  keys_ = p;
  values_ = p + round_up(key_bytes, 64);
}

StagedChunk::StagedChunk(const KeyColumn& keys, const ValueColumn& values, EntryKind kind,
                         std::shared_ptr<const void> owner)
    : borrowed_(true),
      borrowed_keys_(keys),
      borrowed_values_(values),
      owner_(std::move(owner)),
      rows_(keys.size) {
  if (kind != EntryKind::put) kinds_.resize(rows_, static_cast<uint8_t>(kind));
  if (kind == EntryKind::delta) deltas_ = rows_;
}

StagedChunk::StagedChunk(std::vector<KeyRange> ranges)
    : borrowed_(true), ranges_(std::move(ranges)) {}

void StagedChunk::add_ranges(std::vector<KeyRange> ranges) {
  ranges_.insert(ranges_.end(), std::make_move_iterator(ranges.begin()),
                 std::make_move_iterator(ranges.end()));
}

uint64_t StagedChunk::fitting_rows(const KeyColumn& keys, const ValueColumn* values,
                                   uint64_t first) const {
  if (borrowed_) return 0;
  uint64_t n = std::min(keys.size - first, capacity_.rows - rows_);
  if (key_offsets_) n = rows_within(keys, first, n, capacity_.key_bytes - key_offsets_[rows_]);
  if (values) n = rows_within(*values, first, n, capacity_.value_bytes - value_offsets_[rows_]);
  return n;
}

uint64_t StagedChunk::append(const KeyColumn& keys, const ValueColumn* values, uint64_t first,
                             EntryKind kind) {
  uint64_t n = fitting_rows(keys, values, first);
  if (n == 0) return 0;
  if (key_offsets_) {
    copy_bytes(keys_ + key_offsets_[rows_], keys, first, n);
    copy_offsets(key_offsets_ + rows_, key_offsets_[rows_], keys, first, n);
  } else {
    copy_bytes(keys_ + rows_ * key_width_, keys, first, n);
  }
  if (values) {
    copy_bytes(values_ + value_offsets_[rows_], *values, first, n);
    copy_offsets(value_offsets_ + rows_, value_offsets_[rows_], *values, first, n);
  } else {
    std::fill_n(value_offsets_ + rows_ + 1, n, value_offsets_[rows_]);
  }
  if (kind != EntryKind::put || !kinds_.empty()) {
    kinds_.resize(rows_, static_cast<uint8_t>(EntryKind::put));
    kinds_.resize(rows_ + n, static_cast<uint8_t>(kind));
  }
  if (kind == EntryKind::delta) deltas_ += n;
  rows_ += n;
  return n;
}

void StagedChunk::keep(std::span<const uint64_t> bits) {
  // Moves a row to where it is from then on, and says where that ends.
  auto move = [](std::byte* bytes, uint64_t* offsets, uint64_t from, uint64_t to) {
    uint64_t n = offsets[from + 1] - offsets[from];
    std::memmove(bytes + offsets[to], bytes + offsets[from], n);
    offsets[to + 1] = offsets[to] + n;
  };
  uint64_t kept = 0;
  for (uint64_t row = 0; row < rows_; ++row) {
    if (!(bits[row / 64] >> row % 64 & 1)) continue;
    if (kept != row) {
      if (!kinds_.empty()) kinds_[kept] = kinds_[row];
      move(values_, value_offsets_, row, kept);
      if (key_offsets_) {
        move(keys_, key_offsets_, row, kept);
      } else {
        std::memcpy(keys_ + kept * key_width_, keys_ + row * key_width_, key_width_);
      }
    }
    ++kept;
  }
  rows_ = kept;
  if (kinds_.empty()) return;
  kinds_.resize(kept);
  deltas_ = static_cast<uint64_t>(
      std::count(kinds_.begin(), kinds_.end(), static_cast<uint8_t>(EntryKind::delta)));
}

void StagedChunk::truncate(uint64_t rows) noexcept {
  if (rows >= rows_) return;
  for (uint64_t row = rows; deltas_ > 0 && row < rows_; ++row)
    deltas_ -= kind(row) == EntryKind::delta;
  if (!kinds_.empty()) kinds_.resize(rows);
  rows_ = rows;
}

uint64_t StagedTable::rows() const {
  uint64_t n = 0;
  for (const auto& chunk : chunks) n += chunk->rows();
  for (const AdoptedSegment& segment : adopted) n += segment.segment->record().rows;
  return n;
}

uint64_t StagedTable::adopted_bytes() const {
  uint64_t n = 0;
  for (const AdoptedSegment& segment : adopted) n += segment.segment->record().bytes;
  return n;
}

namespace {

// Rows of chunks, in order, copied into chunks that are full.
class ChunkJoiner {
 public:
  explicit ChunkJoiner(StagedTable* table) : table_(table) {}

  void run() {
    std::vector<std::unique_ptr<StagedChunk>> joined;
    for (uint64_t left = table_->rows(); left > 0; left -= joined.back()->rows())
      joined.push_back(next(std::min(left, StagedChunk::max_rows)));
    table_->chunks = std::move(joined);
  }

 private:
  struct Part {
    const StagedChunk* chunk;
    uint64_t first, rows;
  };

  std::unique_ptr<StagedChunk> next(uint64_t rows) {
    std::vector<Part> parts;
    uint64_t key_bytes = 0, value_bytes = 0;
    for (uint64_t left = rows; left > 0;) {
      const StagedChunk& chunk = *table_->chunks[at_];
      uint64_t n = std::min(left, chunk.rows() - row_);
      parts.push_back({&chunk, row_, n});
      key_bytes += chunk.keys().begin(row_ + n) - chunk.keys().begin(row_);
      value_bytes += chunk.values().begin(row_ + n) - chunk.values().begin(row_);
      left -= n;
      row_ += n;
      if (row_ == chunk.rows()) {
        ++at_;
        row_ = 0;
      }
    }
    auto joined = std::make_unique<StagedChunk>(
        table_->table->key_width, StagedChunk::Capacity{rows, key_bytes, value_bytes});
    for (const Part& part : parts) copy(part, joined.get());
    return joined;
  }

  // Stretches of rows of one kind.
  static void copy(const Part& part, StagedChunk* to) {
    const uint64_t end = part.first + part.rows;
    for (uint64_t first = part.first, last; first < end; first = last) {
      EntryKind kind = part.chunk->kind(first);
      for (last = first + 1; last < end && part.chunk->kind(last) == kind;) ++last;
      ValueColumn values = part.chunk->values().slice(first, last - first);
      to->append(part.chunk->keys().slice(first, last - first),
                 kind == EntryKind::tombstone ? nullptr : &values, 0, kind);
    }
  }

  StagedTable* table_;
  size_t at_ = 0;
  uint64_t row_ = 0;
};

}  // namespace

Status join_small_chunks(StagedTable* table) {
  if (table->chunks.size() <= max_staged_chunks) return {};
  std::erase_if(table->chunks, [](const auto& chunk) { return chunk->rows() == 0; });
  if (table->chunks.size() <= max_staged_chunks) return {};
  if (table->rows() > max_index_keys)
    return Status::invalid("the transaction has " + std::to_string(table->rows()) +
                           " rows of table '" + table->table->name + "'; at most " +
                           std::to_string(max_index_keys) + " are possible")
        .with_remedy("commit them in several transactions");
  ChunkJoiner(table).run();
  return {};
}

bool StagedTable::has_ranges() const {
  return std::any_of(chunks.begin(), chunks.end(),
                     [](const auto& c) { return !c->ranges().empty(); });
}

bool StagedTable::has_deltas() const {
  return std::any_of(chunks.begin(), chunks.end(), [](const auto& c) { return c->deltas() > 0; });
}

KeyColumn StagedChunk::keys() const {
  if (borrowed_) return borrowed_keys_;
  return key_offsets_ ? Column::variable(keys_, key_offsets_, rows_)
                      : Column::fixed(keys_, key_width_, rows_);
}

ValueColumn StagedChunk::values() const {
  return borrowed_ ? borrowed_values_ : Column::variable(values_, value_offsets_, rows_);
}

std::unique_ptr<StagedChunk> StagedChunk::make_next(const StagedChunk* last, uint32_t key_width,
                                                    const KeyColumn& keys,
                                                    const ValueColumn* values, uint64_t first) {
  uint64_t left = keys.size - first;
  // Four rows, then 64 and more: what a put of one row takes is small enough to be had at once.
  uint64_t before = last ? std::max<uint64_t>(last->capacity().rows, 32) : 2;
  uint64_t rows = std::clamp<uint64_t>(left, std::min(2 * before, max_rows), max_rows);
  uint64_t sampled = std::min<uint64_t>(left, rows);
  auto bytes_for = [&](const Column& c) {
    uint64_t sample = c.begin(first + sampled) - c.begin(first);
    uint64_t one = c.begin(first + 1) - c.begin(first);
    uint64_t want = sample / sampled * rows + sample % sampled + rows * 4;
    return std::max(std::min(want, target_bytes), one);
  };
  Capacity capacity{rows, bytes_for(keys), values ? bytes_for(*values) : 0};
  if (!values) capacity.value_bytes = std::min(rows * 64, target_bytes);
  return std::make_unique<StagedChunk>(key_width, capacity);
}

}  // namespace stride
