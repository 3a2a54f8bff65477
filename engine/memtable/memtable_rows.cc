#include "engine/memtable/memtable_rows.h"

namespace stride {
namespace {

// Calls use(rows, bytes) for stretches of rows that may lie together in a memtable, where row i
// takes row_bytes(i).
template <class RowBytes, class Use>
void for_each_stretch(uint64_t count, const RowBytes& row_bytes, const Use& use) {
  uint32_t rows = 0;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t more = row_bytes(i);
    if (rows > 0 && bytes + more > TableTail::max_together_bytes) {
      use(rows, bytes);
      rows = 0;
      bytes = 0;
    }
    ++rows;
    bytes += more;
  }
  if (rows > 0) use(rows, bytes);
}

// Returns how many keys are new.
uint64_t insert_stretch(const LogRows& rows, uint32_t first, uint32_t count, uint32_t commit,
                        TableTail::Place place, TableTail* tail) noexcept {
  uint64_t new_keys = 0;
  for (uint32_t i = first; i < first + count; ++i)
    new_keys += tail->insert(&place, commit, rows.kind(i), rows.key(i), rows.value(i));
  return new_keys;
}

}  // namespace

void MemtableRows::add(const std::shared_ptr<const TableRecord>* table, const KeyColumn& keys,
                       const ValueColumn& values, const uint8_t* kinds) {
  if (keys.size == 0) return;
  Section* section = sections_.add({table, payload_.size()});
  append_log_rows((*table)->id, keys, values, kinds, &payload_);
  auto row_bytes = [&](uint64_t i) {
    return TableTail::row_bytes(keys[i].size(), values[i].size());
  };
  for_each_stretch(keys.size, row_bytes, [&](uint32_t rows, uint64_t bytes) {
    section->stretches.add({rows, bytes});
    bytes_ += bytes;
  });
  rows_ += keys.size;
}

void MemtableRows::reserve(Memtable* memtable) {
  sections_.for_each([&](Section& section) {
    section.tail = &memtable->tail(*section.table);
    section.stretches.for_each(
        [&](Stretch& s) { s.place = section.tail->reserve(s.rows, s.bytes); });
  });
}

void MemtableRows::insert(uint32_t commit) noexcept {
  sections_.for_each([&](Section& section) {
    LogRows rows;
    LogRowsDecoder(payload().subspan(section.begin)).next(&rows);
    uint32_t first = 0;
    section.new_keys = 0;
    section.stretches.for_each([&](const Stretch& s) {
      section.new_keys += insert_stretch(rows, first, s.rows, commit, s.place, section.tail);
      first += s.rows;
    });
  });
}

void MemtableRows::keep(uint32_t commit) noexcept {
  sections_.for_each(
      [&](const Section& section) { section.tail->keep_reserved(section.new_keys, commit); });
}

void insert_rows(const LogRows& rows, uint32_t commit, TableTail* tail) {
  auto row_bytes = [&](uint64_t i) {
    const auto row = static_cast<uint32_t>(i);
    return TableTail::row_bytes(rows.key(row).size(), rows.value(row).size());
  };
  uint32_t first = 0;
  for_each_stretch(rows.count, row_bytes, [&](uint32_t count, uint64_t bytes) {
    const TableTail::Place place = tail->reserve(count, bytes);
    tail->keep_reserved(insert_stretch(rows, first, count, commit, place, tail), commit);
    first += count;
  });
}

}  // namespace stride
