// Tables of slots on host threads (vector_layout.h). Each region of a table is one thread's while a
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
#include "gpu/set/region_rows.h"
#include "gpu/set/vector_layout.h"
#include "gpu/set/vector_set_plan.h"
#include "storage/column.h"
#include "storage/prefetch.h"

namespace stride {

// Entries that lie in the table itself. An entry's id is its place, counted from 1; the entry of
// all zeros, which marks an empty slot, has the id 0.
template <class Entry>
class SlotTable {
 public:
  // Its ids stay below max_ids.
  SlotTable(TaskPool& pool, const VectorSetOptions& options, uint64_t capacity,
            uint64_t max_ids = UINT64_MAX)
      : pool_(pool), options_(options), max_ids_(max_ids), hash_{options.seed} {
    add_part(options.grows ? std::max(capacity, min_entries) : capacity);
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
    uint64_t most = RegionRows::max_rows(pool_);
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
  static constexpr uint64_t min_entries = 16 * spare_rows;

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
      can_grow_ = id_limit() + layout_of(options_, capacity).slots() <= max_ids_;
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
  uint64_t max_ids_;
  VectorHash hash_;
  std::vector<Part> parts_;  // oldest first; entries go to the newest
  uint64_t size_ = 0;        // but for the entry of zeros
  uint64_t before_ = 0;      // entries of all parts but the newest
  bool zero_ = false, can_grow_ = true;
  RegionRows rows_;
};

}  // namespace stride
