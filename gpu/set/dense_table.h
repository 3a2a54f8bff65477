// Tables on host threads that find entries which lie elsewhere by their ids (vector_layout.h). Each
// region of a table is one thread's while a batch is put, as in slot_table.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/host/task_pool.h"
#include "gpu/set/region_rows.h"
#include "gpu/set/vector_layout.h"
#include "gpu/set/vector_set_plan.h"
#include "storage/column.h"
#include "storage/prefetch.h"

namespace stride {

// Rows in a store by dense ids, found by a hash table of DenseEntry. The store says what a row is:
//
//   store.hash(batch, row), store.second(batch, row)
//   store.equal(batch, a, b), store.equal_stored(batch, row, id), store.prefetch(id)
//   store.hash_stored(id), store.second_stored(id)
//   store.reserve(batch, begin, n)     room for so many rows; may throw
//   store.append(batch, fresh, places) puts the rows that are fresh, as the ids that follow
//   store.size(), store.clear(), store.memory_bytes()
template <class Store>
class DenseTable {
 public:
  DenseTable(TaskPool& pool, const VectorSetOptions& options, Store store)
      : pool_(pool), options_(options), store_(std::move(store)) {
    layout_ = layout_of(options_, options_.capacity + spare_rows);
    slots_ = zeroed<uint64_t>(pool_, layout_.slots());
  }

  const Store& store() const { return store_; }
  uint64_t memory_bytes() const { return slots_.size() * sizeof(uint64_t) + store_.memory_bytes(); }
  void clear() {
    pool_.run(slots_.size(), 1 << 18, [&](uint64_t begin, uint64_t end) {
      std::fill(slots_.begin() + static_cast<int64_t>(begin),
                slots_.begin() + static_cast<int64_t>(end), 0);
    });
    store_.clear();
  }

  // ids, bits: or null. Returns how many did not fit.
  uint64_t put(const KeyColumn& batch, uint64_t* ids, uint64_t* bits) {
    uint64_t most = RegionRows::max_rows(pool_);
    for (uint64_t at = 0; at < batch.size;) {
      if (!make_room()) return find_rest(batch, at, ids, bits);
      uint64_t rows = rows_of_piece(batch.size - at, options_.capacity - store_.size(), most);
      KeyColumn piece = batch.slice(at, rows);
      if (!reserve(piece)) return find_rest(batch, at, ids, bits);
      if (!put_piece(piece, ids ? ids + at : nullptr, bits ? bits + at / 64 : nullptr))
        return find_rest(batch, at, ids, bits);
      at += rows;
    }
    return 0;
  }

  void find(const KeyColumn& batch, uint64_t* ids) const {
    pool_.run(batch.size, 4096, [&](uint64_t begin, uint64_t end) {
      in_blocks(
          [&](uint64_t k) { return begin + k; }, end - begin,
          [&](uint64_t i) { prefetch(slots_.data() + layout_.first_slot(store_.hash(batch, i))); },
          [&](uint64_t i) { look(store_.hash(batch, i), store_.size()); },
          [&](uint64_t i) { ids[i] = find_one(batch, i); });
    });
  }

 private:
  static constexpr uint64_t no_place = UINT64_MAX;

  bool make_room() {
    if (store_.size() < options_.capacity) return true;
    if (!options_.grows || store_.size() >= max_dense_ids - 2 * spare_rows) return false;
    while (store_.size() >= options_.capacity)
      if (!grow()) return false;
    return true;
  }
  // Doubles the hash table; false: no memory, and nothing has changed.
  bool grow() {
    try {
      uint64_t capacity = std::min(2 * options_.capacity, max_dense_ids - 2 * spare_rows);
      SlotLayout layout = layout_of(options_, std::max(capacity + spare_rows, layout_.slots()));
      BulkVector<uint64_t> slots = zeroed<uint64_t>(pool_, layout.slots());
      if (!refill(layout, slots.data())) return false;
      options_.capacity = capacity;
      layout_ = layout;
      slots_ = std::move(slots);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  // Where vectors collide in an all but empty table, a larger one does not help.
  bool worth_growing() const { return store_.size() * 64 >= slots_.size(); }
  bool reserve(const KeyColumn& piece) {
    try {
      fresh_.resize(piece.size);
      places_.resize(piece.size);
      ranks_.resize(bitmap_words(piece.size) + 1);
      own_bits_.resize(bitmap_words(piece.size));
      store_.reserve(piece);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // All that is stored goes into a table of another size.
  bool refill(const SlotLayout& layout, uint64_t* slots) {
    uint64_t most = RegionRows::max_rows(pool_);
    std::atomic<bool> all{true};
    for (uint64_t at = 0; at < store_.size(); at += most) {
      rows_.hash(pool_, std::min(most, store_.size() - at),
                 [&](uint64_t i) { return store_.hash_stored(at + i); });
      rows_.each_region(pool_, layout, [&](const auto& row_at, uint64_t count) {
        in_blocks(
            row_at, count, [&](uint64_t i) { prefetch(slots + layout.first_slot(rows_.hash(i))); },
            [](uint64_t) {},
            [&](uint64_t i) {
              BucketWalk walk(layout, rows_.hash(i));
              do {
                for (uint32_t s = 0; s < layout.bucket_slots; ++s) {
                  uint64_t& slot = slots[walk.slot() + s];
                  if (slot) continue;
                  slot = DenseEntry::of(rows_.hash(i), at + i);
                  return;
                }
              } while (walk.next([&] { return store_.second_stored(at + i); }));
              all = false;
            });
      });
    }
    return all;
  }

  uint64_t find_rest(const KeyColumn& batch, uint64_t at, uint64_t* ids, uint64_t* bits) {
    KeyColumn rest = batch.slice(at, batch.size - at);
    std::vector<uint64_t> found(rest.size);
    find(rest, found.data());
    if (ids) std::copy(found.begin(), found.end(), ids + at);
    if (bits) std::fill(bits + at / 64, bits + bitmap_words(batch.size), 0);
    return static_cast<uint64_t>(std::count(found.begin(), found.end(), VectorSet::absent));
  }

  uint64_t find_one(const KeyColumn& batch, uint64_t row) const {
    uint64_t hash = store_.hash(batch, row);
    BucketWalk walk(layout_, hash);
    do {
      for (uint32_t s = 0; s < layout_.bucket_slots; ++s) {
        uint64_t entry = slots_[walk.slot() + s];
        if (entry == 0) return VectorSet::absent;
        if (DenseEntry::may_be(entry, hash) &&
            store_.equal_stored(batch, row, DenseEntry::number(entry)))
          return DenseEntry::number(entry);
      }
    } while (walk.next([&] { return store_.second(batch, row); }));
    return VectorSet::absent;
  }

  // First each row finds its vector among those stored and those of rows before it, or leaves its
  // own number. Then which are new is known, and so their ids.
  bool put_piece(const KeyColumn& piece, uint64_t* ids, uint64_t* bits) {
    uint64_t before = store_.size();
    if (!claim_rows(piece, before)) {
      withdraw();
      return options_.grows && worth_growing() && grow() && reserve(piece) &&
             put_piece(piece, ids, bits);
    }
    uint64_t words = bitmap_words(piece.size);
    uint64_t* news = bits ? bits : own_bits_.data();
    pack_flags(pool_, fresh_, news);
    ranks_[0] = before;
    for (uint64_t w = 0; w < words; ++w)
      ranks_[w + 1] = ranks_[w] + static_cast<uint64_t>(std::popcount(news[w]));
    auto rank = [&](uint64_t i) {
      return ranks_[i / 64] +
             static_cast<uint64_t>(std::popcount(news[i / 64] & ((uint64_t{1} << i % 64) - 1)));
    };
    store_.append(pool_, piece, fresh_, rank, ranks_[words]);
    run_surely(pool_, piece.size, 4096, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        uint64_t id = places_[i];
        if (fresh_[i]) {
          id = rank(i);
          slots_[places_[i]] = DenseEntry::of(rows_.hash(i), id);
        } else if (id >= before) {
          id = rank(id - before);
        }
        if (ids) ids[i] = id;
      }
    });
    return true;
  }
  // Every row claims its place. False: some found none. Where memory runs out meanwhile, no row has
  // one, and the exception goes on.
  bool claim_rows(const KeyColumn& piece, uint64_t before) {
    std::atomic<bool> all{true};
    rows_.hash(pool_, piece.size, [&](uint64_t i) { return store_.hash(piece, i); });
    std::fill(fresh_.begin(), fresh_.end(), uint8_t{0});
    try {
      rows_.each_region(pool_, layout_, [&](const auto& row_at, uint64_t count) {
        in_blocks(
            row_at, count,
            [&](uint64_t i) { prefetch(slots_.data() + layout_.first_slot(rows_.hash(i))); },
            [&](uint64_t i) { look(rows_.hash(i), before); },
            [&](uint64_t i) {
              if (!claim(piece, i, before)) all = false;
            });
      });
    } catch (...) {
      withdraw();
      throw;
    }
    return all;
  }
  // The stored vector that is likely to be compared.
  void look(uint64_t hash, uint64_t before) const {
    uint64_t first = layout_.first_slot(hash);
    for (uint32_t s = 0; s < layout_.bucket_slots && slots_[first + s]; ++s) {
      uint64_t entry = slots_[first + s];
      if (!DenseEntry::may_be(entry, hash)) continue;
      if (DenseEntry::number(entry) < before) store_.prefetch(DenseEntry::number(entry));
      return;
    }
  }
  bool claim(const KeyColumn& piece, uint64_t row, uint64_t before) {
    uint64_t hash = rows_.hash(row);
    fresh_[row] = false;
    places_[row] = no_place;
    BucketWalk walk(layout_, hash);
    do {
      for (uint32_t s = 0; s < layout_.bucket_slots; ++s) {
        uint64_t at = walk.slot() + s, entry = slots_[at];
        if (entry == 0) {
          slots_[at] = DenseEntry::of(hash, before + row);
          places_[row] = at;
          fresh_[row] = true;
          return true;
        }
        if (!DenseEntry::may_be(entry, hash)) continue;
        uint64_t number = DenseEntry::number(entry);
        if (number < before ? store_.equal_stored(piece, row, number)
                            : store_.equal(piece, row, number - before)) {
          places_[row] = number;
          return true;
        }
      }
    } while (walk.next([&] { return store_.second(piece, row); }));
    return false;
  }
  // The piece's own entries go again, newest and oldest alike: behind them there are no others.
  void withdraw() {
    run_surely(pool_, fresh_.size(), 4096, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i)
        if (fresh_[i]) slots_[places_[i]] = 0;
    });
  }

  TaskPool& pool_;
  VectorSetOptions options_;
  Store store_;
  SlotLayout layout_;
  BulkVector<uint64_t> slots_;
  // These belong to the piece that is being put:
  RegionRows rows_;
  BulkVector<uint8_t> fresh_;    // whether each row is new
  BulkVector<uint64_t> places_;  // of new rows their slots, of others the numbers that they found
  std::vector<uint64_t> ranks_;  // the id of the first new row of each 64
  std::vector<uint64_t> own_bits_;  // which rows are new, where the caller does not ask
};

}  // namespace stride
