// What a transaction has read, for the check of its commit (engine/write/read_check.h).
//
//   TableReads& reads = set.of(table);
//   reads.add_key(key);                     // whether it was there or not
//   reads.add_interval(from, to);           // keys from `from` on and below `to`
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "storage/checksum.h"
#include "storage/column.h"
#include "storage/manifest.h"

namespace stride {

// Byte strings, one behind the other.
class ByteStrings {
 public:
  // Throws std::bad_alloc. first, second: of one string.
  void add(Bytes first, Bytes second = {}) {
    if (offsets_.empty()) offsets_.push_back(0);
    bytes_.insert(bytes_.end(), first.begin(), first.end());
    bytes_.insert(bytes_.end(), second.begin(), second.end());
    offsets_.push_back(bytes_.size());
  }
  void reserve(uint64_t strings, uint64_t bytes) {
    offsets_.reserve(offsets_.size() + strings + 1);
    bytes_.reserve(bytes_.size() + bytes);
  }
  uint64_t size() const { return offsets_.empty() ? 0 : offsets_.size() - 1; }
  bool empty() const { return size() == 0; }
  // Takes the place of the last one. Throws std::bad_alloc; the last one may be gone then.
  void replace_last(Bytes first, Bytes second = {}) {
    offsets_.pop_back();
    bytes_.resize(offsets_.back());
    add(first, second);
  }
  Bytes operator[](uint64_t i) const {
    return {bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }
  Column column() const { return Column::variable(bytes_.data(), offsets_.data(), size()); }

 private:
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_;
};

// Keys from `from` on and below `to`; null: to the last.
struct KeyInterval {
  Bytes from;
  std::optional<Bytes> to;
};

// What was read of one table. All calls that add something throw std::bad_alloc; this is of no use
// then.
class TableReads {
 public:
  explicit TableReads(std::shared_ptr<const TableRecord> table) : table_(std::move(table)) {}

  void reserve_keys(uint64_t keys, uint64_t bytes) {
    keys_.reserve(keys, bytes);
    checksums_.reserve(checksums_.size() + keys);
  }
  void add_key(Bytes key) {
    if (keys_.empty()) reserve_keys(few_keys, few_bytes);
    keys_.add(key);
    checksums_.push_back(checksum(key));
  }
  // The interval without keys is none. past_to: it ends behind the key `to`.
  void add_interval(Bytes from, std::optional<Bytes> to, bool past_to = false) {
    if (to && (past_to ? compare(from, *to) > 0 : compare(from, *to) >= 0)) return;
    static constexpr std::byte zero{0};
    from_.add(from);
    to_.add(to.value_or(Bytes()), past_to ? Bytes(&zero, 1) : Bytes());
    ends_.push_back(to.has_value());
  }
  // Lets the interval that was added last begin at this key, or end behind it; null: nowhere.
  void extend_last_from(Bytes from) { from_.replace_last(from); }
  void extend_last_to(std::optional<Bytes> to, bool past_to = false) {
    static constexpr std::byte zero{0};
    to_.replace_last(to.value_or(Bytes()), past_to ? Bytes(&zero, 1) : Bytes());
    ends_.back() = to.has_value();
  }
  // Of a prefix table, whose longest prefix was looked for. length: of the one that was found, in
  // bits; 0 where there was none.
  void add_address(Bytes address, uint32_t length) {
    addresses_.add(address);
    lengths_.push_back(length);
  }

  const std::shared_ptr<const TableRecord>& table() const { return table_; }
  const ByteStrings& keys() const { return keys_; }
  uint64_t key_checksum(uint64_t i) const { return checksums_[i]; }
  const ByteStrings& addresses() const { return addresses_; }
  uint32_t length_found(uint64_t address) const { return lengths_[address]; }
  uint64_t intervals() const { return ends_.size(); }
  KeyInterval interval(uint64_t i) const {
    return {from_[i], ends_[i] ? std::optional(to_[i]) : std::nullopt};
  }

 private:
  static constexpr uint64_t few_keys = 8, few_bytes = 128;

  std::shared_ptr<const TableRecord> table_;
  ByteStrings keys_;
  std::vector<uint64_t> checksums_;  // of the keys
  ByteStrings from_, to_;
  std::vector<uint8_t> ends_;  // of each interval: whether it has an end
  ByteStrings addresses_;
  std::vector<uint32_t> lengths_;  // of the prefixes that were found
};

// Not thread-safe.
class ReadSet {
 public:
  // Throws std::bad_alloc. Valid until the next call.
  TableReads& of(const std::shared_ptr<const TableRecord>& table) {
    for (TableReads& reads : tables_)
      if (reads.table()->id == table->id) return reads;
    return tables_.emplace_back(table);
  }
  const std::vector<TableReads>& tables() const { return tables_; }
  bool empty() const { return tables_.empty(); }
  void clear() { tables_ = {}; }

 private:
  std::vector<TableReads> tables_;  // few
};

}  // namespace stride
