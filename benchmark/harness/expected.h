// What an engine must hold once the flows are written, and the checks of what it gives back.
//
//   Expected expected(&records, &parallel);
//   ReadCheck check(expected.keys_are_numbers());   // cheap, in the timed phases
//   engine.read(check);
//   Status s = expected.check(check);
//   FullCheck full(&expected);                      // every record, untimed
//   engine.read(full);
//   s = full.finish();
#pragma once

#include <cstdint>
#include <string>

#include "benchmark/harness/byte_sum.h"
#include "benchmark/harness/records.h"
#include "benchmark/harness/sorted_rows.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

// Sees every record of an ordered read: counts, checks that keys ascend, and sums the bytes of the
// values. Everything is inline, so that an engine pays no call for a record. Engines keep a copy
// in a local variable while they read, which the compiler can hold in registers.
class ReadCheck {
 public:
  // keys_are_numbers: every key has 8 bytes.
  explicit ReadCheck(bool keys_are_numbers) : keys_are_numbers_(keys_are_numbers) {}

  void record(Bytes key, Bytes value) {
    if (keys_are_numbers_) {
      ascends_ &= key.size() == 8;
      return record(key_prefix(key), value);
    }
    ascends_ &= records_ == 0 || compare(as_bytes(last_key_), key) < 0;
    last_key_.assign(as_text(key));
    add(value);
  }
  // For an engine that has an 8-byte key as a number whose big-endian bytes it is.
  void record(uint64_t key, Bytes value) {
    ascends_ &= records_ == 0 || last_number_ < key;
    last_number_ = key;
    add(value);
  }
  // The next records, as columns.
  void batch(const KeyColumn& keys, const ValueColumn& values);

  uint64_t records() const { return records_; }
  uint64_t byte_sum() const { return byte_sum_; }
  bool ascends() const { return ascends_; }

 private:
  void add(Bytes value) {
    byte_sum_ += benchmark::byte_sum(value.data(), value.size());
    ++records_;
  }

  bool keys_are_numbers_;
  bool ascends_ = true;
  uint64_t records_ = 0, byte_sum_ = 0, last_number_ = 0;
  std::string last_key_;
};

// The distinct keys in ascending order, and the values that each may have: of a key that several
// flows wrote, the last value of any of them. Immutable; keeps a pointer to the records.
class Expected {
 public:
  Expected(const Records* records, Parallel* parallel);

  uint64_t size() const { return ends_.size() ? ends_.size() : order_.size(); }
  bool keys_are_numbers() const { return records_->key_width() == 8; }
  Bytes key(uint64_t rank) const { return records_->key(order_[group_begin(rank)]); }
  bool has_value(uint64_t rank, Bytes value) const;
  // Counts keys and values; where values differ between flows, those of the last flow count.
  uint64_t bytes() const { return bytes_; }
  // The rank of the first key that is not smaller.
  uint64_t lower_bound(Bytes key) const;
  bool contains(Bytes key) const {
    uint64_t rank = lower_bound(key);
    return rank < size() && compare(this->key(rank), key) == 0;
  }

  // Says what is wrong with a finished ordered read.
  Status check(const ReadCheck& read) const;

 private:
  uint64_t group_begin(uint64_t rank) const {
    return ends_.size() == 0 ? rank : rank == 0 ? 0 : ends_[rank - 1];
  }
  uint64_t group_end(uint64_t rank) const { return ends_.size() ? ends_[rank] : rank + 1; }
  void find_groups();
  void sum_values(Parallel* parallel);

  const Records* records_;
  ResultBuffer<uint32_t> order_;  // rows by key, then by number
  ResultBuffer<uint32_t> ends_;   // of each key's group in order_; empty where all keys differ
  uint64_t bytes_ = 0;
  uint64_t min_sum_ = 0, max_sum_ = 0;
};

// Compares every record of an ordered read with what is expected, and remembers the first that
// differs.
class FullCheck {
 public:
  explicit FullCheck(const Expected* expected) : expected_(expected) {}

  void record(Bytes key, Bytes value);
  void record(uint64_t key, Bytes value);
  void batch(const KeyColumn& keys, const ValueColumn& values) {
    for (uint64_t i = 0; i < keys.size; ++i) record(keys[i], values[i]);
  }
  // Ok where everything came, in order and as it was written.
  Status finish() const;

 private:
  const Expected* expected_;
  uint64_t next_ = 0;
  std::string problem_;
};

// "0x00ff... (8 bytes)", for messages.
std::string describe(Bytes bytes);

}  // namespace stride::benchmark
