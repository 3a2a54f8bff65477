#include "engine/write/accumulate.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/read/lookup.h"
#include "engine/write/collect_deltas.h"
#include "engine/write/sum_deltas.h"
#include "gpu/backend.h"
#include "storage/work_watch.h"

namespace stride {

// What commits before this one have staged, of each key the last row.
class DeltaSums::EarlierRows {
 public:
  Status begin(Backend& backend, uint32_t key_width) {
    return known_.begin(backend, key_width, /*rows=*/0);
  }
  Status add(const StagedTable& table) {
    for (; chunks_ < table.chunks.size(); ++chunks_) {
      const StagedChunk& chunk = *table.chunks[chunks_];
      if (chunk.rows() == 0) continue;
      STRIDE_TRY(known_.add(chunk.keys()));
      last_.resize(known_.size());
      for (uint32_t row = 0; row < chunk.rows(); ++row)
        last_[known_.numbers()[row]] = {static_cast<uint32_t>(chunks_), row};
    }
    return {};
  }
  // The last row of each key.
  Status find(const KeyColumn& keys, std::vector<Base>* rows) {
    STRIDE_TRY(known_.add(keys));
    last_.resize(known_.size());
    for (uint64_t i = 0; i < keys.size; ++i) (*rows)[i] = last_[known_.numbers()[i]];
    return {};
  }

 private:
  KeyNumbers known_;
  std::vector<Base> last_;  // by number
  size_t chunks_ = 0;
};

namespace {

// What was there, as numbers: of each slot.
class Bases {
 public:
  Bases(const Version& version, const TableRecord& table, const Deltas& deltas)
      : version_(version),
        table_(table),
        keys_(deltas.keys.column()),
        width_(width_of(table.numbers)),
        known_(keys_.size) {}
  // Empty: all are 0.
  const BulkVector<std::byte>& numbers() const { return numbers_; }

  // Reads those that have a row there.
  void read(const StagedTable& from, const std::vector<Base>& rows) {
    for (uint64_t slot = 0; slot < rows.size(); ++slot) {
      if (!rows[slot].found() || known_[slot]) continue;
      known_.set(slot);
      const StagedChunk& chunk = *from.chunks[rows[slot].chunk];
      if (chunk.kind(rows[slot].row) == EntryKind::put)
        set_number(slot, chunk.values()[rows[slot].row]);
    }
  }

  // Looks the others up.
  Status look_up() {
    const SegmentList& segments = version_.find(table_.id)->segments;
    if (segments.empty()) return {};
    std::vector<uint32_t> slots;
    for (uint64_t first = 0; first < keys_.size; first += rows_at_once) {
      STRIDE_TRY(WorkWatch::check());
      uint64_t n = std::min(rows_at_once, keys_.size - first);
      KeyCopies unknown(table_.key_width);
      slots.clear();
      bool all = true;
      for (uint64_t slot = first; slot < first + n; ++slot) all &= !known_[slot];
      for (uint64_t slot = first; slot < first + n && !all; ++slot) {
        if (known_[slot]) continue;
        slots.push_back(static_cast<uint32_t>(slot));
        unknown.add(keys_[slot]);
      }
      KeyColumn queries = all ? keys_.slice(first, n) : unknown.column();
      if (queries.size == 0) continue;
      STRIDE_TRY(lookup_copies(*version_.executor, segments, queries, &found_));
      for (uint64_t i = 0; i < queries.size; ++i)
        if (found_.found[i]) STRIDE_TRY(set(all ? first + i : slots[i], found_.values[i]));
    }
    return {};
  }

 private:
  static constexpr uint64_t rows_at_once = 1 << 20;

  Status set(uint64_t slot, Bytes value) {
    if (value.size() != width_)
      return Status(StatusCode::corruption, "a value of table '" + table_.name + "' has " +
                                                std::to_string(value.size()) + " bytes, not " +
                                                std::to_string(width_))
          .with_remedy("restore the database from a backup");
    set_number(slot, value);
    return {};
  }
  void set_number(uint64_t slot, Bytes value) {
    if (numbers_.empty()) {
      numbers_.resize(keys_.size * width_);
      std::memset(numbers_.data(), 0, numbers_.size());
    }
    std::memcpy(numbers_.data() + slot * width_, value.data(), width_);
  }

  const Version& version_;
  const TableRecord& table_;
  const KeyColumn keys_;
  const uint32_t width_;
  BulkVector<std::byte> numbers_;
  Bitmap known_;
  GetResult found_;
};

void drop_deltas(StagedTable* table) {
  Bitmap kept;
  for (auto& chunk : table->chunks) {
    if (chunk->deltas() == 0) continue;
    if (chunk->deltas() == chunk->rows()) {
      chunk.reset();
      continue;
    }
    kept.reset(chunk->rows());
    for (uint64_t row = 0; row < chunk->rows(); ++row)
      if (chunk->kind(row) != EntryKind::delta) kept.set(row);
    chunk->keep(kept.words());
  }
  std::erase_if(table->chunks, [](const auto& chunk) { return !chunk || chunk->rows() == 0; });
}

// Keys and their numbers, as the rows of a table.
struct SumRows {
  KeyCopies keys;
  BulkVector<std::byte> sums;
};

void put_behind(std::shared_ptr<const SumRows> rows, StagedTable* table) {
  const KeyColumn keys = rows->keys.column();
  const ValueColumn values =
      Column::fixed(rows->sums.data(), width_of(table->table->numbers), keys.size);
  for (uint64_t done = 0; done < keys.size; done += StagedChunk::max_rows) {
    const uint64_t n = std::min(StagedChunk::max_rows, keys.size - done);
    table->chunks.push_back(std::make_unique<StagedChunk>(
        keys.slice(done, n), values.slice(done, n), EntryKind::put, rows));
  }
}

}  // namespace

DeltaSums::DeltaSums(const Version& version) : version_(version) {}
DeltaSums::~DeltaSums() = default;

Status DeltaSums::resolve(const StagedTable* before, StagedTable* table) {
  const TableRecord& record = *table->table;
  Backend& backend = *version_.backend;
  Deltas deltas(record.key_width);
  STRIDE_TRY(collect_deltas(backend, table, &deltas));
  if (deltas.keys.size() == 0) {
    drop_deltas(table);
    return {};
  }
  Bases bases(version_, record, deltas);
  bases.read(*table, deltas.bases);
  if (before && before->rows() > 0) {
    if (!earlier_) {
      auto rows = std::make_unique<EarlierRows>();
      STRIDE_TRY(rows->begin(backend, record.key_width));
      earlier_ = std::move(rows);
    }
    STRIDE_TRY(earlier_->add(*before));
    std::vector<Base> rows(deltas.keys.size());
    STRIDE_TRY(earlier_->find(deltas.keys.column(), &rows));
    bases.read(*before, rows);
  }
  STRIDE_TRY(bases.look_up());
  BulkVector<std::byte> sums;
  STRIDE_TRY(sum_deltas(version_, record, deltas, bases.numbers(), &sums));
  STRIDE_TRY(WorkWatch::check());
  drop_deltas(table);
  put_behind(std::make_shared<SumRows>(SumRows{std::move(deltas.keys), std::move(sums)}), table);
  return {};
}

}  // namespace stride
