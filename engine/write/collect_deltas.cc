#include "engine/write/collect_deltas.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/write/dense_keys.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

constexpr uint32_t none = 0xFFFFFFFF;

class Collector {
 public:
  Collector(StagedTable* table, Deltas* deltas)
      : table_(*table), width_(width_of(table->table->numbers)), deltas_(*deltas) {}

  Status run(Backend& backend) {
    uint64_t rows = 0, count = 0;
    for (const auto& chunk : table_.chunks) {
      rows += chunk->rows();
      count += chunk->deltas();
    }
    if (count > none - 1) return too_many();
    deltas_.numbers.resize(count * width_);
    deltas_.slots.resize(count);
    only_deltas_ = count == rows;
    DenseKeys dense(backend);
    if (only_deltas_ && dense.look(key_columns())) return number(&dense, backend);
    STRIDE_TRY(known_.begin(backend, table_.table->key_width, rows));
    for (uint32_t c = 0; c < table_.chunks.size(); ++c) {
      const StagedChunk& chunk = *table_.chunks[c];
      if (chunk.rows() == 0) continue;
      STRIDE_TRY(WorkWatch::check());
      if (WorkWatch* watch = WorkWatch::current()) watch->add(chunk.rows());
      STRIDE_TRY(known_.add(chunk.keys()));
      if (only_deltas_) {
        add_deltas(chunk);
        table_.chunks[c].reset();
      } else {
        add_rows(c, chunk);
      }
    }
    if (only_deltas_) table_.chunks.clear();
    if (dead_ > 0) drop_dead();
    return {};
  }

 private:
  static Status too_many() {
    return Status(StatusCode::resource_exhausted, "more than 4,294,967,294 deltas in a commit")
        .with_remedy("commit them in several transactions");
  }

  std::vector<KeyColumn> key_columns() const {
    std::vector<KeyColumn> columns;
    for (const auto& chunk : table_.chunks) columns.push_back(chunk->keys());
    return columns;
  }

  // Slots are the places of keys in their order. Only deltas.
  Status number(DenseKeys* dense, Backend& backend) {
    std::vector<uint64_t> first(table_.chunks.size());
    for (size_t c = 0; c < first.size(); ++c) first[c] = std::exchange(at_, at_ + rows_of(c));
    WorkWatch* const watch = WorkWatch::current();
    backend.parallel_for(first.size(), 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t c = begin; c < end; ++c) {
        const uint64_t rows = rows_of(c);
        if (rows == 0) continue;
        dense->mark(table_.chunks[c]->keys(), deltas_.slots.data() + first[c]);
        std::memcpy(deltas_.numbers.data() + first[c] * width_,
                    table_.chunks[c]->values()[0].data(), rows * width_);
        table_.chunks[c].reset();
        if (watch) watch->add(rows);
      }
    });
    table_.chunks.clear();
    dense->finish(deltas_.slots, &deltas_.keys);
    return {};
  }
  uint64_t rows_of(size_t chunk) const { return table_.chunks[chunk]->rows(); }

  // Slots are the keys' numbers.
  void add_deltas(const StagedChunk& chunk) {
    const KeyColumn keys = chunk.keys();
    for_each_bit(known_.was_new(), [&](uint64_t row) { deltas_.keys.add(keys[row]); });
    std::memcpy(deltas_.numbers.data() + at_ * width_, chunk.values()[0].data(),
                chunk.rows() * width_);
    uint32_t* slots = deltas_.slots.data() + at_;
    for (uint64_t number : known_.numbers()) *slots++ = static_cast<uint32_t>(number);
    at_ += chunk.rows();
  }

  void add_rows(uint32_t c, const StagedChunk& chunk) {
    const KeyColumn keys = chunk.keys();
    const ValueColumn values = chunk.values();
    keys_.resize(known_.size());
    for (uint32_t row = 0; row < chunk.rows(); ++row) {
      Key& key = keys_[known_.numbers()[row]];
      if (chunk.kind(row) != EntryKind::delta) {
        key.base = {c, row};
        if (key.slot == none) continue;
        // What comes before this is of no account.
        is_dead_.resize(deltas_.keys.size());
        is_dead_[key.slot] = true;
        key.slot = none;
        ++dead_;
        continue;
      }
      if (key.slot == none) {
        key.slot = static_cast<uint32_t>(deltas_.keys.size());
        deltas_.keys.add(keys[row]);
        deltas_.bases.push_back(key.base);
      }
      std::memcpy(deltas_.numbers.data() + at_ * width_, values[row].data(), width_);
      deltas_.slots[at_++] = key.slot;
    }
  }

  void drop_dead() {
    Deltas live(table_.table->key_width);
    const KeyColumn keys = deltas_.keys.column();
    is_dead_.resize(keys.size);
    std::vector<uint32_t> moved(keys.size, none);
    for (uint64_t slot = 0; slot < keys.size; ++slot) {
      if (is_dead_[slot]) continue;
      moved[slot] = static_cast<uint32_t>(live.keys.size());
      live.keys.add(keys[slot]);
      live.bases.push_back(deltas_.bases[slot]);
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < at_; ++i) {
      uint32_t slot = moved[deltas_.slots[i]];
      if (slot == none) continue;
      deltas_.slots[kept] = slot;
      std::memmove(deltas_.numbers.data() + kept * width_, deltas_.numbers.data() + i * width_,
                   width_);
      ++kept;
    }
    deltas_.slots.resize(kept);
    deltas_.numbers.resize(kept * width_);
    deltas_.keys = std::move(live.keys);
    deltas_.bases = std::move(live.bases);
  }

  struct Key {
    Base base;
    uint32_t slot = none;  // of its deltas since
  };

  StagedTable& table_;
  const uint32_t width_;
  Deltas& deltas_;
  KeyNumbers known_;
  bool only_deltas_ = false;
  std::vector<Key> keys_;  // by number; where there are not only deltas
  std::vector<bool> is_dead_;
  uint64_t at_ = 0, dead_ = 0;
};

}  // namespace

Status collect_deltas(Backend& backend, StagedTable* table, Deltas* deltas) {
  return Collector(table, deltas).run(backend);
}

}  // namespace stride
