#include "engine/staging.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "storage/prefix_key.h"

namespace stride {
namespace {

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

Status check_row_count(const KeyColumn& keys, const ValueColumn* values) {
  if (values && values->size != keys.size)
    return Status::invalid("keys have " + std::to_string(keys.size) + " rows and values " +
                           std::to_string(values->size) + ": give one value for each key");
  return {};
}

Status key_width_error(const TableRecord& table, uint64_t row, uint64_t bytes) {
  Status s = Status::invalid("row " + std::to_string(row) + ": a key has " + std::to_string(bytes) +
                             " bytes, but every key of table '" + table.name + "' has " +
                             std::to_string(table.key_width));
  if (table.address_bits == 0) return s;
  return std::move(s).with_remedy("make keys of prefixes with make_prefix_keys()");
}

Status check_keys(const TableRecord& table, const KeyColumn& keys) {
  uint32_t width = table.key_width;
  if (keys.is_fixed()) {
    if (width && keys.width != width) return key_width_error(table, 0, keys.width);
    if (keys.width > max_key_bytes)
      return Status::invalid("a key has " + std::to_string(keys.width) +
                             " bytes; at most 65535 are possible");
    return {};
  }
  for (uint64_t i = 0; i < keys.size; ++i) {
    uint64_t bytes = keys.offsets[i + 1] - keys.offsets[i];
    if (width && bytes != width) return key_width_error(table, i, bytes);
    if (keys.offsets[i + 1] < keys.offsets[i])
      return Status::invalid("row " + std::to_string(i) + ": key offsets descend");
    if (bytes > max_key_bytes)
      return Status::invalid("row " + std::to_string(i) + ": a key has " + std::to_string(bytes) +
                             " bytes; at most 65535 are possible");
  }
  return {};
}

Status check_values(const ValueColumn& values) {
  if (values.is_fixed()) return {};
  for (uint64_t i = 0; i < values.size; ++i) {
    if (values.offsets[i + 1] < values.offsets[i])
      return Status::invalid("row " + std::to_string(i) + ": value offsets descend");
    if (values.offsets[i + 1] - values.offsets[i] > max_value_bytes)
      return Status::invalid("row " + std::to_string(i) + ": a value has " +
                             std::to_string(values.offsets[i + 1] - values.offsets[i]) +
                             " bytes; at most 4294967295 are possible");
  }
  return {};
}

// How many of rows [first, first + most) hold at most `bytes` bytes.
uint64_t rows_within(const Column& column, uint64_t first, uint64_t most, uint64_t bytes) {
  if (column.is_fixed())
    return column.width ? std::min<uint64_t>(most, bytes / column.width) : most;
  const uint64_t* o = column.offsets + first;
  return std::upper_bound(o + 1, o + most + 1, o[0] + bytes) - (o + 1);
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
constexpr uint64_t most_small_bytes = 64 << 10;

StagedChunk::StagedChunk(uint32_t key_width, Capacity capacity)
    : key_width_(key_width), capacity_(capacity) {
  uint64_t offset_bytes = (capacity.rows + 1) * sizeof(uint64_t);
  uint64_t key_bytes = key_width ? capacity.rows * key_width : capacity.key_bytes;
  uint64_t bytes =
      offset_bytes * (key_width ? 1 : 2) + round_up(key_bytes, 64) + capacity.value_bytes;
  std::byte* p;
  if (bytes <= most_small_bytes) {
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

StagedChunk::StagedChunk(const KeyColumn& keys, const ValueColumn& values)
    : borrowed_(true), borrowed_keys_(keys), borrowed_values_(values), rows_(keys.size) {}

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

namespace {

// Precondition: check_keys() was ok.
Status check_prefixes(const TableRecord& table, const KeyColumn& keys) {
  uint32_t bits = table.address_bits;
  for (uint64_t i = 0; i < keys.size; ++i) {
    if (is_prefix_key(keys[i], bits)) continue;
    uint32_t length = prefix_length(keys[i], bits);
    std::string row = "row " + std::to_string(i) + ": ";
    if (length > bits)
      return Status::invalid(row + "a prefix has " + std::to_string(length) +
                             " bits, but the addresses of table '" + table.name + "' have " +
                             std::to_string(bits))
          .with_remedy("make keys with make_prefix_keys(), which finds such rows too");
    return Status::invalid(row + "bits behind the prefix's " + std::to_string(length) +
                           " bits are set, in table '" + table.name + "'")
        .with_remedy("make keys with make_prefix_keys() and HostBits::mask, which clears them");
  }
  return {};
}

// Precondition: check_values() was ok.
Status check_numbers(const TableRecord& table, const ValueColumn& values) {
  const uint32_t width = width_of(table.numbers);
  auto bytes_of = [&](uint64_t i) { return values.begin(i + 1) - values.begin(i); };
  uint64_t row = 0;
  if (values.is_fixed()) {
    if (values.size == 0 || values.width == width) return {};
  } else {
    while (row < values.size && bytes_of(row) == width) ++row;
    if (row == values.size) return {};
  }
  return Status::invalid("row " + std::to_string(row) + ": a value has " +
                         std::to_string(bytes_of(row)) + " bytes, but every value of table '" +
                         table.name + "' is a number of type " +
                         std::string(to_string(table.numbers)) + ", of " + std::to_string(width))
      .with_remedy("give each number in " + std::to_string(width) + " bytes, little-endian");
}

Status check_columns(const TableRecord& table, const KeyColumn& keys, const ValueColumn* values) {
  STRIDE_TRY(check_row_count(keys, values));
  STRIDE_TRY(check_keys(table, keys));
  if (table.address_bits && table.address_bits != byte_strings)
    STRIDE_TRY(check_prefixes(table, keys));
  if (!values) return {};
  STRIDE_TRY(check_values(*values));
  return table.numbers == NumberType::none ? Status() : check_numbers(table, *values);
}

Status check_bits(uint64_t rows, std::span<const uint64_t> was_new) {
  uint64_t words = (rows + 63) / 64;
  if (was_new.empty() || was_new.size() == words) return {};
  return Status::invalid("was_new has " + std::to_string(was_new.size()) + " words, but the " +
                         std::to_string(rows) + " rows need " + std::to_string(words))
      .with_remedy("give a bit for each row, 64 a word, or no words at all");
}

}  // namespace

std::unique_ptr<StagedChunk> StagedChunk::make_next(const StagedChunk* last, uint32_t key_width,
                                                    const KeyColumn& keys,
                                                    const ValueColumn* values, uint64_t first) {
  uint64_t left = keys.size - first;
  uint64_t before = last ? last->capacity().rows : 32;
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

Status Staging::stage_deltas(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                             const ValueColumn& deltas) {
  if (table->numbers == NumberType::none)
    return Status::invalid("nothing can be added to the values of table '" + table->name +
                           "', which are bytes, not numbers")
        .with_remedy("make a table with TableOptions::numbers");
  return stage_rows(table, keys, &deltas, EntryKind::delta);
}

Status Staging::stage_rows(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                           const ValueColumn* values, EntryKind kind) {
  STRIDE_TRY(check_columns(*table, keys, values));
  if (keys.size == 0) return {};
  StagedChunk* there = nullptr;  // the chunk that rows were appended to, and how many it had
  uint64_t rows_there = 0;
  try {
    Slot* slot = slot_of_this_thread(table);
    StagedChunk* chunk = there = slot->chunk;
    rows_there = there ? there->rows() : 0;
    std::vector<std::unique_ptr<StagedChunk>> added;
    for (uint64_t done = 0; done < keys.size;) {
      uint64_t n = chunk ? chunk->append(keys, values, done, kind) : 0;
      if (n == 0) {
        added.push_back(StagedChunk::make_next(chunk, table->key_width, keys, values, done));
        chunk = added.back().get();
      }
      done += n;
    }
    add_chunks(slot, std::move(added));
  } catch (const std::bad_alloc&) {
    if (there) there->truncate(rows_there);
    return Status::out_of_memory();
  }
  count(keys, values);
  return {};
}

Status Staging::stage_view(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                           const ValueColumn& values) {
  // A chunk for each of many small views would cost more than a copy, and a sort takes only so
  // many.
  constexpr uint64_t least_rows = 4096, least_bytes = 64 << 10;
  STRIDE_TRY(check_columns(*table, keys, &values));
  if (keys.size < least_rows && keys.bytes() + values.bytes() < least_bytes)
    return stage(table, keys, &values);
  try {
    std::vector<std::unique_ptr<StagedChunk>> added;
    for (uint64_t done = 0; done < keys.size; done += StagedChunk::max_rows) {
      uint64_t n = std::min(StagedChunk::max_rows, keys.size - done);
      added.push_back(
          std::make_unique<StagedChunk>(keys.slice(done, n), values.slice(done, n)));
    }
    add_chunks(slot_of_this_thread(table), std::move(added));
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  }
  count(keys, &values);
  return {};
}

Status Staging::stage_ranges(const std::shared_ptr<const TableRecord>& table,
                             std::vector<KeyRange> ranges) {
  if (ranges.empty()) return {};
  uint64_t n = ranges.size(), bytes = 0;
  for (const KeyRange& r : ranges) bytes += r.from.size() + (r.to ? r.to->size() : 0);
  try {
    Slot* slot = slot_of_this_thread(table);
    if (slot->chunk && !slot->chunk->ranges().empty()) {
      slot->chunk->add_ranges(std::move(ranges));
    } else {
      std::vector<std::unique_ptr<StagedChunk>> added;
      added.push_back(std::make_unique<StagedChunk>(std::move(ranges)));
      add_chunks(slot, std::move(added));
    }
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  }
  rows_.fetch_add(n, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

Status Staging::stage_absent(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                             const ValueColumn& values, std::span<uint64_t> was_new) {
  STRIDE_TRY(check_columns(*table, keys, &values));
  STRIDE_TRY(check_bits(keys.size, was_new));
  std::fill(was_new.begin(), was_new.end(), 0);
  if (keys.size == 0) return {};
  AbsentChunk* there = nullptr;  // as above
  uint64_t rows_there = 0, answers_there = 0;
  try {
    Slot* slot = slot_of_this_thread(table);
    AbsentChunk* chunk = there = slot->absent;
    rows_there = there ? there->rows->rows() : 0;
    answers_there = there ? there->answers.size() : 0;
    std::vector<std::unique_ptr<AbsentChunk>> added;
    for (uint64_t done = 0; done < keys.size;) {
      StagedChunk* rows = chunk ? chunk->rows.get() : nullptr;
      uint64_t first = rows ? rows->rows() : 0;
      uint64_t n = rows ? rows->append(keys, &values, done, EntryKind::put) : 0;
      if (n == 0) {
        added.push_back(std::make_unique<AbsentChunk>(AbsentChunk{
            StagedChunk::make_next(rows, table->key_width, keys, &values, done), {}}));
        chunk = added.back().get();
      } else if (!was_new.empty()) {
        chunk->answers.push_back({first, n, was_new.data(), done});
      }
      done += n;
    }
    add_absent(slot, std::move(added));
  } catch (const std::bad_alloc&) {
    if (there) {
      there->rows->truncate(rows_there);
      there->answers.resize(answers_there);
    }
    return Status::out_of_memory();
  }
  count(keys, &values);
  return {};
}

Status Staging::create(std::shared_ptr<const TableRecord> table) {
  std::lock_guard lock(mutex_);
  for (const auto& t : created_)
    if (t->name == table->name)
      return Status(StatusCode::already_exists,
                    "the transaction has created a table '" + table->name + "' already");
  created_.push_back(std::move(table));
  return {};
}

void Staging::hand_over() {
  std::lock_guard lock(mutex_);
  for (auto& slot : slots_) {
    slot->chunk = nullptr;
    slot->absent = nullptr;
  }
}

void Staging::count(const KeyColumn& keys, const ValueColumn* values) {
  rows_.fetch_add(keys.size, std::memory_order_relaxed);
  bytes_.fetch_add(keys.bytes() + (values ? values->bytes() : 0), std::memory_order_relaxed);
}

namespace {

template <class T>
void move_behind(std::vector<T>* list, std::vector<T>* added) {
  if (list->capacity() < list->size() + added->size())
    list->reserve(std::max(2 * list->size(), list->size() + added->size()));
  std::move(added->begin(), added->end(), std::back_inserter(*list));
}

}  // namespace

void Staging::add_chunks(Slot* slot, std::vector<std::unique_ptr<StagedChunk>> chunks) {
  if (chunks.empty()) return;
  std::lock_guard lock(mutex_);
  StagedChunk* last = chunks.back().get();
  move_behind(&slot->table->chunks, &chunks);
  slot->chunk = last;
}

void Staging::add_absent(Slot* slot, std::vector<std::unique_ptr<AbsentChunk>> chunks) {
  if (chunks.empty()) return;
  std::lock_guard lock(mutex_);
  AbsentChunk* last = chunks.back().get();
  move_behind(&slot->table->absent, &chunks);
  slot->absent = last;
}

Staging::Slot* Staging::slot_of_this_thread(const std::shared_ptr<const TableRecord>& table) {
  std::thread::id self = std::this_thread::get_id();
  std::lock_guard lock(mutex_);
  for (auto& slot : slots_)
    if (slot->thread == self && slot->table->table->id == table->id) return slot.get();
  auto of_table = std::find_if(tables_.begin(), tables_.end(),
                               [&](auto& t) { return t->table->id == table->id; });
  if (of_table == tables_.end()) {
    tables_.push_back(std::make_unique<StagedTable>(StagedTable{table, {}, {}}));
    of_table = tables_.end() - 1;
  }
  slots_.push_back(std::make_unique<Slot>(Slot{self, of_table->get(), nullptr, nullptr}));
  return slots_.back().get();
}

std::vector<StagedTable> Staging::take() {
  std::lock_guard lock(mutex_);
  std::vector<StagedTable> result;
  for (auto& table : tables_) result.push_back(std::move(*table));
  tables_.clear();
  slots_.clear();
  return result;
}

}  // namespace stride
