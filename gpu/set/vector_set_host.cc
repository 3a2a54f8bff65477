#include "gpu/set/vector_set_host.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <mutex>
#include <string>

#include "gpu/set/dense_table.h"
#include "gpu/set/slot_table.h"
#include "storage/column.h"
#include "storage/no_throw.h"
#include "storage/status.h"

namespace stride {

namespace {

uint32_t word_at(const std::byte* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

void note_smallest(std::atomic<uint64_t>* smallest, uint64_t x) {
  uint64_t seen = *smallest;
  while (x < seen && !smallest->compare_exchange_weak(seen, x)) {
  }
}

// Vectors by dense ids.
class WordStore {
 public:
  WordStore(uint32_t words, uint64_t seed, uint64_t capacity)
      : hash_{seed}, words_(words), bytes_(words * 4), first_(capacity + spare_rows) {}

  uint64_t hash(const KeyColumn& batch, uint64_t row) const { return first_hash(at(batch, row)); }
  uint64_t second(const KeyColumn& batch, uint64_t row) const {
    return second_hash(at(batch, row));
  }
  uint64_t hash_stored(uint64_t id) const { return first_hash(at(id)); }
  uint64_t second_stored(uint64_t id) const { return second_hash(at(id)); }
  bool equal(const KeyColumn& batch, uint64_t a, uint64_t b) const {
    return std::memcmp(at(batch, a), at(batch, b), bytes_) == 0;
  }
  bool equal_stored(const KeyColumn& batch, uint64_t row, uint64_t id) const {
    return std::memcmp(at(batch, row), at(id), bytes_) == 0;
  }
  void prefetch(uint64_t id) const { stride::prefetch(at(id)); }
  void reserve(const KeyColumn& piece) {
    while (room_ < size_ + piece.size) {
      auto chunk = static_cast<uint32_t>(chunks_.size());
      uint64_t items = GrowingChunks::size(chunk, first_);
      chunks_.emplace_back(items * bytes_);
      room_ += items;
    }
  }
  template <class Rank>
  void append(TaskPool& pool, const KeyColumn& piece, const BulkVector<uint8_t>& fresh,
              const Rank& rank, uint64_t size) {
    run_surely(pool, piece.size, 4096, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i)
        if (fresh[i]) std::memcpy(const_cast<std::byte*>(at(rank(i))), at(piece, i), bytes_);
    });
    size_ = size;
  }
  uint64_t size() const { return size_; }
  uint64_t memory_bytes() const { return room_ * bytes_; }
  void clear() { size_ = 0; }
  const std::byte* at(uint64_t id) const {
    uint32_t chunk = GrowingChunks::chunk_of(id, first_);
    return chunks_[chunk].data() + (id - GrowingChunks::begin(chunk, first_)) * bytes_;
  }

 private:
  const std::byte* at(const KeyColumn& batch, uint64_t row) const {
    return batch.data + row * bytes_;
  }
  uint64_t first_hash(const std::byte* p) const {
    return hash_.first([p](uint32_t i) { return word_at(p + i * 4); }, words_);
  }
  uint64_t second_hash(const std::byte* p) const {
    return hash_.second([p](uint32_t i) { return word_at(p + i * 4); }, words_);
  }

  VectorHash hash_;
  uint32_t words_, bytes_;
  uint64_t first_, room_ = 0, size_ = 0;
  std::vector<BulkVector<std::byte>> chunks_;
};

// Byte strings by dense ids: one after the other.
class ByteStore {
 public:
  uint64_t hash(const KeyColumn& batch, uint64_t row) const { return XXH3_64bits_of(batch[row]); }
  uint64_t second(const KeyColumn& batch, uint64_t row) const { return second_of(batch[row]); }
  uint64_t hash_stored(uint64_t id) const { return XXH3_64bits_of(at(id)); }
  uint64_t second_stored(uint64_t id) const { return second_of(at(id)); }
  bool equal(const KeyColumn& batch, uint64_t a, uint64_t b) const {
    return same(batch[a], batch[b]);
  }
  bool equal_stored(const KeyColumn& batch, uint64_t row, uint64_t id) const {
    return same(batch[row], at(id));
  }
  void prefetch(uint64_t id) const { stride::prefetch(bytes_.data() + ends_[id]); }
  void reserve(const KeyColumn& piece) {
    make_room(&ends_, size_ + piece.size + 1);
    make_room(&bytes_, ends_[size_] + piece.bytes());
  }
  template <class Rank>
  void append(TaskPool& pool, const KeyColumn& piece, const BulkVector<uint8_t>& fresh,
              const Rank& rank, uint64_t size) {
    uint64_t end = ends_[size_];
    for (uint64_t i = 0; i < piece.size; ++i) {
      if (!fresh[i]) continue;
      end += piece[i].size();
      ends_[rank(i) + 1] = end;
    }
    run_surely(pool, piece.size, 4096, [&](uint64_t first, uint64_t last) {
      for (uint64_t i = first; i < last; ++i) {
        Bytes row = piece[i];
        if (fresh[i] && !row.empty())
          std::memcpy(bytes_.data() + ends_[rank(i)], row.data(), row.size());
      }
    });
    size_ = size;
  }
  uint64_t size() const { return size_; }
  uint64_t memory_bytes() const { return ends_.size() * sizeof(uint64_t) + bytes_.size(); }
  void clear() { size_ = 0; }

 private:
  Bytes at(uint64_t id) const { return {bytes_.data() + ends_[id], ends_[id + 1] - ends_[id]}; }
  static bool same(Bytes a, Bytes b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }
  static uint64_t XXH3_64bits_of(Bytes row) { return XXH3_64bits(row.data(), row.size()); }
  static uint64_t second_of(Bytes row) {
    return XXH3_64bits_withSeed(row.data(), row.size(), VectorHash::other);
  }
  template <class T>
  static void make_room(BulkVector<T>* to, uint64_t n) {
    if (to->size() < n) to->resize(std::max(n, to->size() + to->size() / 2));
  }

  uint64_t size_ = 0;
  BulkVector<uint64_t> ends_ = {0};  // where each begins; as many as there is room for, and one
  BulkVector<std::byte> bytes_;
};

class DenseVectors final : public VectorSet {
 public:
  DenseVectors(TaskPool& pool, const VectorSetOptions& options)
      : VectorSet(options.words),
        pool_(pool),
        table_(pool, options, WordStore(options.words, options.seed, options.capacity)) {}

  Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids,
                               uint64_t* was_new) override {
    return table_.put(vectors, ids, was_new);
  }
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override {
    table_.find(vectors, ids);
    return {};
  }
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override {
    std::atomic<uint64_t> bad{absent};
    pool_.run(ids.size(), 4096, [&](uint64_t begin, uint64_t end) {
      in_blocks([&](uint64_t k) { return begin + k; }, end - begin,
                [&](uint64_t i) {
                  if (ids[i] < size()) table_.store().prefetch(ids[i]);
                },
                [](uint64_t) {},
                [&](uint64_t i) {
                  if (ids[i] >= size()) return note_smallest(&bad, i);
                  std::memcpy(vectors + i * words_ * 4, table_.store().at(ids[i]), words_ * 4);
                });
    });
    return bad.load();
  }
  Status clear_vectors() override {
    table_.clear();
    return {};
  }
  uint64_t size() const override { return table_.store().size(); }
  uint64_t id_limit() const override { return size(); }
  uint64_t memory_bytes() const override { return table_.memory_bytes(); }

 private:
  TaskPool& pool_;
  DenseTable<WordStore> table_;
};

// A table's entries as vectors of 1, 2 or 4 words.
template <class Entry>
class SlotVectors final : public VectorSet {
 public:
  SlotVectors(TaskPool& pool, const VectorSetOptions& options)
      : VectorSet(options.words), pool_(pool), table_(pool, options, options.capacity) {}

  Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids,
                               uint64_t* was_new) override {
    BulkVector<uint64_t> own(ids ? 0 : vectors.size);
    BulkVector<uint8_t> fresh(was_new ? vectors.size : 0);
    uint64_t failed = table_.put(vectors.size, entries(vectors), ids ? ids : own.data(),
                                 was_new ? fresh.data() : nullptr);
    if (was_new) pack_flags(pool_, fresh, was_new);
    return failed;
  }
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override {
    table_.find(vectors.size, entries(vectors), ids);
    return {};
  }
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override {
    std::atomic<uint64_t> bad{absent};
    pool_.run(ids.size(), 4096, [&](uint64_t begin, uint64_t end) {
      in_blocks([&](uint64_t k) { return begin + k; }, end - begin,
                [&](uint64_t i) { table_.ask_for(ids[i]); }, [](uint64_t) {},
                [&](uint64_t i) {
                  Entry entry;
                  if (!table_.get(ids[i], &entry)) return note_smallest(&bad, i);
                  std::memcpy(vectors + i * sizeof entry, &entry, sizeof entry);
                });
    });
    return bad.load();
  }
  Status clear_vectors() override {
    table_.clear();
    return {};
  }
  uint64_t size() const override { return table_.size(); }
  uint64_t id_limit() const override { return table_.id_limit(); }
  uint64_t memory_bytes() const override { return table_.memory_bytes(); }

 private:
  static auto entries(const KeyColumn& vectors) {
    return [data = vectors.data](uint64_t i) {
      Entry entry;
      std::memcpy(&entry, data + i * sizeof entry, sizeof entry);
      return entry;
    };
  }

  TaskPool& pool_;
  SlotTable<Entry> table_;
};

// Two items of a level: words, or ids of nodes.
template <class Item>
struct PairOf;
template <>
struct PairOf<uint32_t> {
  using Entry = uint64_t;
};
template <>
struct PairOf<uint64_t> {
  using Entry = Wide;
};

template <class Item>
class CompressedVectors final : public VectorSet {
 public:
  using Entry = typename PairOf<Item>::Entry;
  static constexpr Item absent_item = static_cast<Item>(absent);

  CompressedVectors(TaskPool& pool, const VectorSetOptions& options)
      : VectorSet(options.words),
        pool_(pool),
        nodes_(pool, options, options.node_capacity, absent_item),
        roots_(pool, options, options.capacity) {}

  Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids,
                               uint64_t* was_new) override {
    uint64_t failed = 0;
    for (uint64_t at = 0; at < vectors.size; at += rows_of_chunk) {
      KeyColumn chunk = vectors.slice(at, std::min(rows_of_chunk, vectors.size - at));
      failed += put_chunk(chunk, ids ? ids + at : nullptr, was_new ? was_new + at / 64 : nullptr);
    }
    return failed;
  }
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override {
    for (uint64_t at = 0; at < vectors.size; at += rows_of_chunk)
      find_chunk(vectors.slice(at, std::min(rows_of_chunk, vectors.size - at)), ids + at);
    return {};
  }
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override {
    std::atomic<uint64_t> bad{absent};
    pool_.run(ids.size(), 1024, [&](uint64_t begin, uint64_t end) {
      std::array<Item, max_vector_words> items;
      for (uint64_t i = begin; i < end; ++i) {
        if (!expand(ids[i], items.data())) {
          note_smallest(&bad, i);
          continue;
        }
        for (uint32_t w = 0; w < words_; ++w) {
          auto word = static_cast<uint32_t>(items[w]);
          std::memcpy(vectors + (i * words_ + w) * 4, &word, sizeof word);
        }
      }
    });
    return bad.load();
  }
  Status clear_vectors() override {
    nodes_.clear();
    roots_.clear();
    return {};
  }
  uint64_t size() const override { return roots_.size(); }
  uint64_t id_limit() const override { return roots_.id_limit(); }
  uint64_t nodes() const override { return nodes_.size(); }
  uint64_t memory_bytes() const override { return nodes_.memory_bytes() + roots_.memory_bytes(); }

 private:
  static constexpr uint64_t rows_of_chunk = 1 << 16;

  static Entry pair(Item left, Item right) {
    return static_cast<Entry>(right) << (8 * sizeof(Item)) | left;
  }
  // Goes up from the words of a chunk to the two items of each root. level(n, entry_of, ids) sets
  // the ids of n pairs, absent where there is none; a pair of an absent item is absent.
  template <class Level>
  void climb(const KeyColumn& chunk, const Level& level) {
    uint64_t n = chunk.size;
    items_.resize(n * words_);
    pool_.run(n * words_, 1 << 14, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) items_[i] = word_at(chunk.data + i * 4);
    });
    bad_.assign(n, 0);
    for (uint32_t width = words_; width > 2; width = items_above(width)) {
      uint32_t pairs = width / 2, above = items_above(width);
      auto entry_of = [&](uint64_t k) {
        const Item* at = items_.data() + k / pairs * width + k % pairs * 2;
        return pair(at[0], at[1]);
      };
      ids_.resize(n * pairs);
      level(n * pairs, entry_of, ids_.data());
      next_.resize(n * above);
      pool_.run(n, 4096, [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i) {
          for (uint32_t p = 0; p < pairs; ++p) {
            uint64_t id = ids_[i * pairs + p];
            bad_[i] |= id >= absent_item;
            next_[i * above + p] = static_cast<Item>(id);
          }
          if (width % 2) next_[i * above + pairs] = items_[i * width + width - 1];
        }
      });
      items_.swap(next_);
    }
  }
  Entry root(uint64_t i) const {
    if (words_ == 1) return items_[i];
    return pair(items_[i * 2], items_[i * 2 + 1]);
  }

  // Vectors whose nodes did not fit do not count, though some of their nodes stay.
  uint64_t put_chunk(const KeyColumn& chunk, uint64_t* ids, uint64_t* bits) {
    climb(chunk, [&](uint64_t n, const auto& entry_of, uint64_t* out) {
      nodes_.put(n, entry_of, out, nullptr);
    });
    places_.clear();
    for (uint64_t i = 0; i < chunk.size; ++i)
      if (!bad_[i]) places_.push_back(static_cast<uint32_t>(i));
    ids_.resize(places_.size());
    fresh_.resize(places_.size());
    uint64_t failed = chunk.size - places_.size();
    failed += roots_.put(
        places_.size(), [&](uint64_t k) { return root(places_[k]); }, ids_.data(), fresh_.data());
    if (ids) std::fill(ids, ids + chunk.size, absent);
    if (bits) std::fill(bits, bits + bitmap_words(chunk.size), 0);
    for (uint64_t k = 0; k < places_.size(); ++k) {
      uint32_t i = places_[k];
      if (ids) ids[i] = ids_[k];
      if (bits) bits[i / 64] |= uint64_t{fresh_[k]} << i % 64;
    }
    return failed;
  }
  void find_chunk(const KeyColumn& chunk, uint64_t* out) {
    std::lock_guard lock(mutex_);
    climb(chunk,
          [&](uint64_t n, const auto& entry_of, uint64_t* ids) { nodes_.find(n, entry_of, ids); });
    roots_.find(
        chunk.size, [&](uint64_t i) { return root(i); }, out);
    for (uint64_t i = 0; i < chunk.size; ++i)
      if (bad_[i]) out[i] = absent;
  }

  // The words of a vector: level by level down from its root, each level from its right end, so
  // that what is still to be expanded is not written over.
  bool expand(uint64_t id, Item* items) const {
    Entry entry;
    if (!roots_.get(id, &entry)) return false;
    split(entry, items);
    uint32_t widths[8], levels = 0;
    for (uint32_t width = words_; width > 2; width = items_above(width)) widths[levels++] = width;
    while (levels-- > 0) {
      uint32_t width = widths[levels], pairs = width / 2;
      if (width % 2) items[width - 1] = items[pairs];
      for (uint32_t p = pairs; p-- > 0;) {
        nodes_.get(items[p], &entry);
        split(entry, items + p * 2);
      }
    }
    return true;
  }
  static void split(Entry entry, Item* items) {
    items[0] = static_cast<Item>(entry);
    items[1] = static_cast<Item>(entry >> (8 * sizeof(Item)));
  }

  TaskPool& pool_;
  SlotTable<Entry> nodes_, roots_;
  std::mutex mutex_;  // of what follows, for find
  BulkVector<Item> items_, next_;
  BulkVector<uint64_t> ids_;
  BulkVector<uint32_t> places_;
  BulkVector<uint8_t> fresh_;
  std::vector<uint8_t> bad_;  // of each vector: some node is not there
};

class DenseBytes final : public ByteSet {
 public:
  explicit DenseBytes(TaskPool& pool) : table_(pool, options(), ByteStore()) {}

  Status find_or_put(const KeyColumn& rows, std::span<uint64_t> ids,
                     std::span<uint64_t> was_new) override {
    if ((!ids.empty() && ids.size() != rows.size) ||
        (!was_new.empty() && was_new.size() != bitmap_words(rows.size))) {
      return Status::invalid("room for " + std::to_string(ids.size()) + " ids and " +
                             std::to_string(was_new.size()) + " words of bits, for " +
                             std::to_string(rows.size) + " rows")
          .with_remedy("give an id for each row and a word for 64 of them, or none");
    }
    return no_throw([&] {
      uint64_t failed = table_.put(rows, ids.empty() ? nullptr : ids.data(),
                                   was_new.empty() ? nullptr : was_new.data());
      if (failed == 0) return Status();
      return Status(StatusCode::resource_exhausted, "not enough memory for " +
                                                        std::to_string(failed) + " of " +
                                                        std::to_string(rows.size) + " rows")
          .with_remedy("free some memory, or keep the set in a table of a database");
    });
  }
  uint64_t size() const override { return table_.store().size(); }
  uint64_t memory_bytes() const override { return table_.memory_bytes(); }

 private:
  static VectorSetOptions options() {
    VectorSetOptions options;
    options.words = 1;
    options.capacity = 1 << 12;
    options.bucket_slots = 4;
    options.neighbours = 2;
    return options;
  }
  DenseTable<ByteStore> table_;
};

template <class Set>
std::unique_ptr<VectorSet> make(TaskPool& pool, const VectorSetOptions& options) {
  return std::make_unique<Set>(pool, options);
}

}  // namespace

Result<std::unique_ptr<VectorSet>> make_vector_set_host(TaskPool& pool, VectorSetOptions options) {
  STRIDE_TRY(complete_options(&options));
  switch (options.form) {
    case VectorForm::dense:
      return make<DenseVectors>(pool, options);
    case VectorForm::slots:
      if (options.words == 1) return make<SlotVectors<uint32_t>>(pool, options);
      if (options.words == 2) return make<SlotVectors<uint64_t>>(pool, options);
      return make<SlotVectors<Wide>>(pool, options);
    case VectorForm::compressed:
      return options.wide_nodes ? make<CompressedVectors<uint64_t>>(pool, options)
                                : make<CompressedVectors<uint32_t>>(pool, options);
  }
  return Status::invalid("no such form of a set");
}

std::unique_ptr<ByteSet> make_byte_set_host(TaskPool& pool) {
  return std::make_unique<DenseBytes>(pool);
}

}  // namespace stride
