// Hash tables on host threads (vector_layout.h). Each region of a table is one thread's while a
// batch is put, with the region's rows in their order, so that what is found and where it is put
// do not depend on how many threads there are, and no thread waits for another.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/host/task_pool.h"
#include "gpu/set/vector_layout.h"
#include "gpu/set/vector_set_plan.h"
#include "gpu/tree_index.h"
#include "storage/column.h"
#include "storage/prefetch.h"

namespace stride {

// Zeroed by all threads.
template <class T>
BulkVector<T> zeroed(TaskPool& pool, uint64_t n) {
  BulkVector<T> memory(n);
  pool.run(n, (4 << 20) / sizeof(T), [&](uint64_t begin, uint64_t end) {
    std::memset(static_cast<void*>(memory.data() + begin), 0, (end - begin) * sizeof(T));
  });
  return memory;
}

// Rows of a piece, and which go to which region.
class RegionRows {
 public:
  // Rows that a cache holds together with what is noted of each.
  static constexpr uint64_t rows_of_thread = 1 << 16;
  static uint64_t most_rows(const TaskPool& pool) {
    return rows_of_thread * std::min(pool.threads(), 16u);
  }

  // hash_of(row) for rows [0, n).
  template <class HashOf>
  void hash(TaskPool& pool, uint64_t n, const HashOf& hash_of) {
    hashes_.resize(n);
    pool.run(n, grain, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) hashes_[i] = hash_of(i);
    });
  }
  uint64_t hash(uint64_t row) const { return hashes_[row]; }

  // Calls run(row_at, count) for the rows of each region, on several threads: row_at(k) is the k-th
  // of them.
  template <class Run>
  void each_region(TaskPool& pool, const SlotLayout& layout, const Run& run) {
    uint64_t n = hashes_.size();
    if (pool.threads() == 1 || layout.region_bits == 0 || n < fewest_rows_shared)
      return run([](uint64_t k) { return k; }, n);
    sort_by_region(pool, layout);
    pool.run_each(uint64_t{1} << layout.region_bits, [&](uint64_t region, uint64_t) {
      const uint32_t* rows = order_.data() + begins_[region];
      run([rows](uint64_t k) { return uint64_t{rows[k]}; }, begins_[region + 1] - begins_[region]);
    });
  }

 private:
  static constexpr uint64_t grain = 4096, fewest_rows_shared = 8192;

  void sort_by_region(TaskPool& pool, const SlotLayout& layout) {
    uint64_t n = hashes_.size(), regions = uint64_t{1} << layout.region_bits;
    uint64_t pieces = std::min<uint64_t>(pool.threads(), n / grain + 1);
    auto edge = [&](uint64_t piece) { return n * piece / pieces; };
    std::vector<uint64_t> next(pieces * regions);
    pool.run_each(pieces, [&](uint64_t piece, uint64_t) {
      for (uint64_t i = edge(piece); i < edge(piece + 1); ++i)
        ++next[piece * regions + layout.region(hashes_[i])];
    });
    begins_.resize(regions + 1);
    uint64_t sum = 0;
    for (uint64_t region = 0; region < regions; ++region) {
      begins_[region] = sum;
      for (uint64_t piece = 0; piece < pieces; ++piece)
        sum += std::exchange(next[piece * regions + region], sum);
    }
    begins_[regions] = sum;
    order_.resize(n);
    pool.run_each(pieces, [&](uint64_t piece, uint64_t) {
      for (uint64_t i = edge(piece); i < edge(piece + 1); ++i)
        order_[next[piece * regions + layout.region(hashes_[i])]++] = static_cast<uint32_t>(i);
    });
  }

  BulkVector<uint64_t> hashes_;
  BulkVector<uint32_t> order_;
  std::vector<uint64_t> begins_;
};

// Calls ask(row) for a block of rows, so that their cache misses overlap, then look(row), then
// settle(row) for each.
template <class RowAt, class Ask, class Look, class Settle>
void in_blocks(const RowAt& row_at, uint64_t count, const Ask& ask, const Look& look,
               const Settle& settle) {
  constexpr uint64_t block = 32;
  for (uint64_t at = 0; at < count; at += block) {
    uint64_t end = std::min(count, at + block);
    for (uint64_t k = at; k < end; ++k) ask(row_at(k));
    for (uint64_t k = at; k < end; ++k) look(row_at(k));
    for (uint64_t k = at; k < end; ++k) settle(row_at(k));
  }
}

// A bit for each flag.
inline void pack_flags(TaskPool& pool, std::span<const uint8_t> flags, uint64_t* bits) {
  pool.run(bitmap_words(flags.size()), 256, [&](uint64_t begin, uint64_t end) {
    for (uint64_t w = begin; w < end; ++w) {
      uint64_t word = 0, from = w * 64, n = std::min<uint64_t>(64, flags.size() - from);
      for (uint64_t i = 0; i < n; ++i) word |= uint64_t{flags[from + i]} << i;
      bits[w] = word;
    }
  });
}

// Entries that lie in the table itself. An entry's id is its place, counted from 1; the entry of
// all zeros, which marks an empty slot, has the id 0.
template <class Entry>
class SlotTable {
 public:
  // Its ids stay below most_ids.
  SlotTable(TaskPool& pool, const VectorSetOptions& options, uint64_t capacity,
            uint64_t most_ids = UINT64_MAX)
      : pool_(pool), options_(options), most_ids_(most_ids), hash_{options.seed} {
    add_part(options.grows ? std::max(capacity, fewest_entries) : capacity);
  }

  uint64_t size() const { return size_ + zero_; }
  uint64_t id_limit() const { return 1 + parts_.back().first + parts_.back().slots.size(); }
  uint64_t memory_bytes() const { return (id_limit() - 1) * sizeof(Entry); }
  void clear() {
    parts_.resize(1);
    BulkVector<Entry>& slots = parts_[0].slots;
    pool_.run(slots.size(), 1 << 18, [&](uint64_t begin, uint64_t end) {
      std::fill(slots.data() + begin, slots.data() + end, Entry{});
    });
    size_ = before_ = 0;
    zero_ = false;
    can_grow_ = true;
  }

  // ids[i]: of entry_of(i), or VectorSet::absent where it did not fit. fresh: null, or set to
  // whether it is new. Returns how many did not fit.
  template <class EntryOf, class Id>
  uint64_t put(uint64_t n, const EntryOf& entry_of, Id* ids, uint8_t* fresh) {
    uint64_t failed = 0;
    uint64_t most = RegionRows::most_rows(pool_);
    for (uint64_t at = 0; at < n;) {
      uint64_t room = room_to_grow();
      uint64_t rows =
          options_.grows && can_grow_ ? rows_of_piece(n - at, room, most) : std::min(n - at, most);
      auto entry = [&](uint64_t i) { return entry_of(at + i); };
      failed += put_piece(rows, entry, ids + at, fresh ? fresh + at : nullptr);
      at += rows;
    }
    return failed;
  }

  template <class EntryOf>
  void find(uint64_t n, const EntryOf& entry_of, uint64_t* ids) const {
    pool_.run(n, 4096, [&](uint64_t begin, uint64_t end) {
      in_blocks([&](uint64_t k) { return begin + k; }, end - begin,
                [&](uint64_t i) { ask(hash_.first(entry_of(i))); }, [](uint64_t) {},
                [&](uint64_t i) {
                  Entry entry = entry_of(i);
                  ids[i] = find_one(entry, hash_.first(entry));
                });
    });
  }

  // Whether there is an entry of this id, which is then copied.
  bool get(uint64_t id, Entry* entry) const {
    *entry = Entry{};
    if (id == 0) return zero_;
    if (id >= id_limit()) return false;
    for (const Part& part : parts_) {
      if (id - 1 - part.first >= part.slots.size()) continue;
      *entry = part.slots[id - 1 - part.first];
      return *entry != Entry{};
    }
    return false;
  }
  void ask_for(uint64_t id) const {
    for (const Part& part : parts_)
      if (id - 1 - part.first < part.slots.size())
        return prefetch(part.slots.data() + (id - 1 - part.first));
  }

 private:
  // A table that grows begins no smaller, so that a piece of spare_rows does not make a part much
  // fuller than it should be: whatever is not in it is looked for in all of its buckets then.
  static constexpr uint64_t fewest_entries = 16 * spare_rows;

  struct Part {
    SlotLayout layout;
    uint64_t first;  // of its slots, among those of all parts
    BulkVector<Entry> slots;
    uint64_t capacity;
  };

  void add_part(uint64_t capacity) {
    Part part{layout_of(options_, capacity), 0, {}, capacity};
    if (!parts_.empty()) part.first = parts_.back().first + parts_.back().slots.size();
    part.slots = zeroed<Entry>(pool_, part.layout.slots());
    before_ = size_;
    parts_.push_back(std::move(part));
  }
  // Doubles the room.
  bool grow() {
    if (!options_.grows || !can_grow_) return false;
    try {
      uint64_t capacity = 0;
      for (const Part& part : parts_) capacity += part.capacity;
      can_grow_ = id_limit() + layout_of(options_, capacity).slots() <= most_ids_;
      if (can_grow_) add_part(capacity);
    } catch (const std::bad_alloc&) {
      can_grow_ = false;
    }
    return can_grow_;
  }
  // How many new entries the newest part takes before it is fuller than it should be. Makes another
  // where that is hardly any.
  uint64_t room_to_grow() {
    const Part& newest = parts_.back();
    uint64_t there = size_ - before_;
    uint64_t room = newest.capacity > there ? newest.capacity - there : 0;
    if (room * 16 < newest.capacity && grow()) room = parts_.back().capacity;
    return room;
  }

  void ask(uint64_t hash) const {
    for (const Part& part : parts_) prefetch(part.slots.data() + part.layout.first_slot(hash));
  }

  // The slot that holds the entry, or else, with *found false, the empty one where it goes; null:
  // there is none.
  static Entry* slot_of(Part& part, const VectorHash& hash, Entry entry, uint64_t first,
                        bool* found) {
    BucketWalk walk(part.layout, first);
    do {
      Entry* slot = part.slots.data() + walk.slot();
      for (uint32_t s = 0; s < part.layout.bucket_slots; ++s) {
        *found = slot[s] == entry;
        if (*found || slot[s] == Entry{}) return slot + s;
      }
    } while (walk.next([&] { return hash.second(entry); }));
    return nullptr;
  }
  static uint64_t id_of(const Part& part, const Entry* slot) {
    return 1 + part.first + static_cast<uint64_t>(slot - part.slots.data());
  }

  uint64_t find_one(Entry entry, uint64_t first) const {
    if (entry == Entry{}) return zero_ ? 0 : VectorSet::absent;
    for (const Part& part : parts_) {
      bool found = false;
      const Entry* slot = slot_of(const_cast<Part&>(part), hash_, entry, first, &found);
      if (slot && found) return id_of(part, slot);
    }
    return VectorSet::absent;
  }

  template <class EntryOf, class Id>
  uint64_t put_piece(uint64_t n, const EntryOf& entry_of, Id* ids, uint8_t* fresh) {
    rows_.hash(pool_, n, [&](uint64_t i) { return hash_.first(entry_of(i)); });
    std::atomic<uint64_t> added{0}, failed{0};
    auto run = [&](const auto& row_at, uint64_t count) {
      uint64_t put = 0, lost = 0;
      in_blocks(
          row_at, count, [&](uint64_t i) { ask(rows_.hash(i)); }, [](uint64_t) {},
          [&](uint64_t i) {
            bool is_new = false;
            uint64_t id = put_one(entry_of(i), rows_.hash(i), &is_new, &put);
            ids[i] = static_cast<Id>(id);
            lost += id == VectorSet::absent;
            if (fresh) fresh[i] = is_new;
          });
      added += put;
      failed += lost;
    };
    rows_.each_region(pool_, parts_.back().layout, run);
    size_ += added;
    // Vectors that were made to collide fill a few buckets long before the table is full.
    while (failed > 0 && size_ * 64 >= id_limit() && grow()) {
      uint64_t lost = 0, put = 0;
      for (uint64_t i = 0; i < n; ++i) {
        if (ids[i] != static_cast<Id>(VectorSet::absent)) continue;
        bool is_new = false;
        uint64_t id = put_one(entry_of(i), rows_.hash(i), &is_new, &put);
        ids[i] = static_cast<Id>(id);
        lost += id == VectorSet::absent;
        if (fresh) fresh[i] = is_new;
      }
      size_ += put;
      failed = lost;
    }
    return failed;
  }

  uint64_t put_one(Entry entry, uint64_t first, bool* is_new, uint64_t* added) {
    if (entry == Entry{}) {
      *is_new = !zero_;
      zero_ = true;
      return 0;
    }
    for (uint64_t p = 0; p < parts_.size(); ++p) {
      Part& part = parts_[p];
      bool found = false;
      Entry* slot = slot_of(part, hash_, entry, first, &found);
      if (slot && found) return id_of(part, slot);
      if (!slot || p + 1 < parts_.size()) continue;
      *slot = entry;
      *is_new = true;
      ++*added;
      return id_of(part, slot);
    }
    return VectorSet::absent;
  }

  TaskPool& pool_;
  VectorSetOptions options_;
  uint64_t most_ids_;
  VectorHash hash_;
  std::vector<Part> parts_;  // oldest first; entries go to the newest
  uint64_t size_ = 0;        // but for the entry of zeros
  uint64_t before_ = 0;      // entries of all parts but the newest
  bool zero_ = false, can_grow_ = true;
  RegionRows rows_;
};

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
    uint64_t most = RegionRows::most_rows(pool_);
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
      store_.reserve(piece);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // All that is stored goes into a table of another size.
  bool refill(const SlotLayout& layout, uint64_t* slots) {
    uint64_t most = RegionRows::most_rows(pool_);
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
    std::atomic<bool> all{true};
    rows_.hash(pool_, piece.size, [&](uint64_t i) { return store_.hash(piece, i); });
    rows_.each_region(pool_, layout_, [&](const auto& row_at, uint64_t count) {
      in_blocks(
          row_at, count,
          [&](uint64_t i) { prefetch(slots_.data() + layout_.first_slot(rows_.hash(i))); },
          [&](uint64_t i) { look(rows_.hash(i), before); },
          [&](uint64_t i) {
            if (!claim(piece, i, before)) all = false;
          });
    });
    if (!all) {
      withdraw();
      return options_.grows && worth_growing() && grow() && reserve(piece) &&
             put_piece(piece, ids, bits);
    }
    uint64_t words = bitmap_words(piece.size);
    std::vector<uint64_t> own(bits ? 0 : words);
    uint64_t* news = bits ? bits : own.data();
    pack_flags(pool_, fresh_, news);
    ranks_[0] = before;
    for (uint64_t w = 0; w < words; ++w)
      ranks_[w + 1] = ranks_[w] + static_cast<uint64_t>(std::popcount(news[w]));
    auto rank = [&](uint64_t i) {
      return ranks_[i / 64] +
             static_cast<uint64_t>(std::popcount(news[i / 64] & ((uint64_t{1} << i % 64) - 1)));
    };
    store_.append(pool_, piece, fresh_, rank, ranks_[words]);
    pool_.run(piece.size, 4096, [&](uint64_t begin, uint64_t end) {
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
    pool_.run(fresh_.size(), 4096, [&](uint64_t begin, uint64_t end) {
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
};

}  // namespace stride
