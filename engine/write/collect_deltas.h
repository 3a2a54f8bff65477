// The deltas of a transaction that count, out of what it has staged of one table.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/write/staging.h"
#include "gpu/backend.h"

namespace stride {

// Finds equal keys: of each it says the number, 0, 1, 2, ... as they first came.
class KeyNumbers {
 public:
  // rows: about how many will come.
  Status begin(Backend& backend, uint32_t key_width, uint64_t rows) {
    if (key_width == 0 || key_width % 4 != 0 || key_width / 4 > max_vector_words) {
      auto made = backend.sets().make_byte_set();
      if (!made.ok()) return made.status();
      bytes_ = std::move(*made);
      return {};
    }
    VectorSetOptions options;
    options.words = key_width / 4;
    options.capacity = std::clamp<uint64_t>(rows / 8, 1 << 10, 1 << 20);
    auto made = backend.sets().make_vector_set(options);
    if (!made.ok()) return made.status();
    vectors_ = std::move(*made);
    return {};
  }
  uint64_t size() const { return vectors_ ? vectors_->size() : bytes_->size(); }

  // The numbers of the rows' keys, in numbers() until the next call.
  Status add(const KeyColumn& keys) {
    numbers_.resize(keys.size);
    was_new_.resize((keys.size + 63) / 64);
    return vectors_ ? vectors_->find_or_put(keys, numbers_, was_new_)
                    : bytes_->find_or_put(keys, numbers_, was_new_);
  }
  std::span<const uint64_t> numbers() const { return numbers_; }
  // Rows of the last call whose keys are new, a bit each.
  std::span<const uint64_t> was_new() const { return was_new_; }

 private:
  std::unique_ptr<VectorSet> vectors_;
  std::unique_ptr<ByteSet> bytes_;
  std::vector<uint64_t> numbers_, was_new_;
};

// Copies of keys.
class KeyCopies {
 public:
  explicit KeyCopies(uint32_t width) : width_(width) {}
  void add(Bytes key) {
    bytes_.insert(bytes_.end(), key.begin(), key.end());
    ++size_;
    if (!width_) offsets_.push_back(bytes_.size());
  }
  KeyColumn column() const {
    return width_ ? Column::fixed(bytes_.data(), width_, size_)
                  : Column::variable(bytes_.data(), offsets_.data(), size_);
  }
  uint64_t size() const { return size_; }
  // Room for so many keys, of so many bytes together, in the place of those that were there. Who
  // fills it sets where each key ends, unless `ends` is null, because keys have one width.
  struct Room {
    std::byte* bytes;
    uint64_t* ends;
  };
  Room resize(uint64_t keys, uint64_t bytes) {
    bytes_.resize(bytes);
    if (!width_) offsets_.resize(keys + 1);
    size_ = keys;
    return {bytes_.data(), width_ ? nullptr : offsets_.data() + 1};
  }

 private:
  uint32_t width_;
  BulkVector<std::byte> bytes_;
  BulkVector<uint64_t> offsets_{0};
  uint64_t size_ = 0;
};

// A row that puts or erases the key that deltas are added to.
struct Base {
  uint32_t chunk = absent, row = 0;
  bool found() const { return chunk != absent; }
  static constexpr uint32_t absent = 0xFFFFFFFF;
};

// The deltas of a transaction that count, by slots: a slot is a key from a put or an erasure of it
// to the next one.
struct Deltas {
  explicit Deltas(uint32_t key_width) : keys(key_width) {}

  KeyCopies keys;           // of each slot
  std::vector<Base> bases;  // of each slot; empty: none has any
  BulkVector<std::byte> numbers;
  BulkVector<uint32_t> slots;  // of each number
};

// Takes those of the table's chunks. Leaves no chunks where they hold nothing but deltas.
// resource_exhausted: there are too many.
Status collect_deltas(Backend& backend, StagedTable* table, Deltas* deltas);

}  // namespace stride
