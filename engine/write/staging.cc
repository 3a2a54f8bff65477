#include "engine/write/staging.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "engine/catalog/indexed_segment.h"
#include "storage/prefix_key.h"

namespace stride {
namespace {

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

Status check_takes_deltas(const TableRecord& table) {
  if (table.numbers != NumberType::none) return {};
  return Status::invalid("nothing can be added to the values of table '" + table.name +
                         "', which are bytes, not numbers")
      .with_remedy("make a table with TableOptions::numbers");
}

Status check_bits(uint64_t rows, std::span<const uint64_t> was_new) {
  uint64_t words = (rows + 63) / 64;
  if (was_new.empty() || was_new.size() == words) return {};
  return Status::invalid("was_new has " + std::to_string(was_new.size()) + " words, but the " +
                         std::to_string(rows) + " rows need " + std::to_string(words))
      .with_remedy("give a bit for each row, 64 a word, or no words at all");
}

}  // namespace

Status Staging::stage_deltas(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                             const ValueColumn& deltas) {
  STRIDE_TRY(check_takes_deltas(*table));
  return stage_rows(table, keys, &deltas, EntryKind::delta);
}

Status Staging::stage_delta_view(const std::shared_ptr<const TableRecord>& table,
                                 const KeyColumn& keys, const ValueColumn& deltas) {
  STRIDE_TRY(check_takes_deltas(*table));
  return view_rows(table, keys, deltas, EntryKind::delta);
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

Status Staging::view_rows(const std::shared_ptr<const TableRecord>& table, const KeyColumn& keys,
                          const ValueColumn& values, EntryKind kind) {
  // A chunk for each of many small views would cost more than a copy, and a sort takes only so
  // many.
  constexpr uint64_t min_rows = 4096, min_bytes = 64 << 10;
  STRIDE_TRY(check_columns(*table, keys, &values));
  if (keys.size < min_rows && keys.bytes() + values.bytes() < min_bytes)
    return stage_rows(table, keys, &values, kind);
  try {
    std::vector<std::unique_ptr<StagedChunk>> added;
    for (uint64_t done = 0; done < keys.size; done += StagedChunk::max_rows) {
      uint64_t n = std::min(StagedChunk::max_rows, keys.size - done);
      added.push_back(
          std::make_unique<StagedChunk>(keys.slice(done, n), values.slice(done, n), kind));
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
        added.push_back(std::make_unique<AbsentChunk>(
            AbsentChunk{StagedChunk::make_next(rows, table->key_width, keys, &values, done), {}}));
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

namespace {

Status adopts_rows_of(const TableRecord& table) {
  return Status::invalid("a transaction that adopts rows of table '" + table.name +
                         "' changes no other rows of it")
      .with_remedy("commit it, and change them in another transaction");
}

}  // namespace

Status Staging::adopt(const std::shared_ptr<const TableRecord>& table,
                      std::vector<AdoptedSegment> segments) {
  if (segments.empty()) return {};
  std::lock_guard lock(mutex_);
  StagedTable* staged = staged_table(table);
  if (staged->chunk_count() > 0) return adopts_rows_of(*table);
  uint64_t rows = 0, bytes = 0;
  for (const AdoptedSegment& added : segments) {
    rows += added.segment->record().rows;
    bytes += added.segment->record().bytes;
  }
  segments.insert(segments.end(), staged->adopted.begin(), staged->adopted.end());
  STRIDE_TRY(sort_disjoint(*table, &segments));
  staged->adopted = std::move(segments);
  rows_.fetch_add(rows, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  adopts_.store(true, std::memory_order_relaxed);
  return {};
}

Status Staging::check_takes_rows(const TableRecord& table) {
  if (!adopts()) return {};
  std::lock_guard lock(mutex_);
  StagedTable* const* staged = tables_by_id_.find(table.id);
  return staged && !(*staged)->adopted.empty() ? adopts_rows_of(table) : Status();
}

namespace {

Status has_created(const std::string& name) {
  return Status(StatusCode::already_exists,
                "the transaction has created a table '" + name + "' already");
}

Status has_given_name(const std::string& name) {
  return Status(StatusCode::already_exists,
                "the transaction has given another table the name '" + name + "'");
}

}  // namespace

Status Staging::create(std::shared_ptr<const TableRecord> table) {
  std::lock_guard lock(mutex_);
  if (created_by_name_.find(table->name)) return has_created(table->name);
  if (find_renamed_to(table->name)) return has_given_name(table->name);
  created_.push_back(table);
  try {
    created_by_name_.add(table->name, table);
  } catch (...) {
    created_.pop_back();
    throw;
  }
  return {};
}

std::shared_ptr<const TableRecord> Staging::find_created(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto found = created_by_name_.find(name);
  return found ? *found : nullptr;
}

Status Staging::check_renaming(uint32_t table, const std::string& name,
                               const std::string& new_name) const {
  for (const auto& created : created_)
    if (created->name == new_name) return has_created(new_name);
  if (find_renamed_to(new_name)) return has_given_name(new_name);
  if (renames(table))
    return Status(StatusCode::already_exists,
                  "the transaction has given table '" + name + "' another name already");
  return {};
}

Status Staging::rename(TableRenaming renaming) {
  STRIDE_TRY(check_renaming(renaming.from->id, renaming.from->name, renaming.to->name));
  renamed_.push_back(std::move(renaming));
  return {};
}

void Staging::undo_rename() noexcept { renamed_.pop_back(); }

const TableRenaming* Staging::find_renamed_to(const std::string& name) const {
  for (const TableRenaming& renaming : renamed_)
    if (renaming.to->name == name) return &renaming;
  return nullptr;
}

bool Staging::renames(uint32_t table) const {
  return std::any_of(renamed_.begin(), renamed_.end(),
                     [&](const TableRenaming& renaming) { return renaming.from->id == table; });
}

void Staging::hand_over() {
  std::lock_guard lock(mutex_);
  slots_.for_each([](Slot& slot) {
    slot.chunk = nullptr;
    slot.absent = nullptr;
  });
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

namespace {

// To both, or, where it throws, to neither.
template <class T, class Index, class Key>
T* add_to_both(OwnedList<T>* list, T object, Index* index, const Key& key) {
  T* const added = list->add(std::move(object));
  try {
    index->add(key, added);
  } catch (...) {
    list->remove_last();
    throw;
  }
  return added;
}

}  // namespace

Staging::Slot* Staging::slot_of_this_thread(const std::shared_ptr<const TableRecord>& table) {
  const SlotKey key{std::this_thread::get_id(), table->id};
  std::lock_guard lock(mutex_);
  if (Slot* const* slot = slots_by_key_.find(key)) return *slot;
  return add_to_both(&slots_, Slot{staged_table(table), nullptr, nullptr}, &slots_by_key_, key);
}

StagedTable* Staging::staged_table(const std::shared_ptr<const TableRecord>& table) {
  if (StagedTable* const* staged = tables_by_id_.find(table->id)) return *staged;
  return add_to_both(&tables_, StagedTable{table, {}, {}}, &tables_by_id_, table->id);
}

bool Staging::has_rows_alone() {
  bool all = renamed_.empty();
  for_each_table([&](const StagedTable& staged) {
    const bool is_plain = staged.table->address_bits == 0 || !staged.adopted.empty();
    all = all && is_plain && staged.has_rows_alone();
  });
  return all;
}

std::vector<StagedTable> Staging::consume() {
  std::lock_guard lock(mutex_);
  std::vector<StagedTable> result;
  result.reserve(tables_.size());
  tables_.for_each([&](StagedTable& table) { result.push_back(std::move(table)); });
  tables_.clear();
  tables_by_id_.clear();
  slots_.clear();
  slots_by_key_.clear();
  return result;
}

}  // namespace stride
