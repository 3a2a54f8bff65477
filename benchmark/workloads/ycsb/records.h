// The records of a run, and what a reader may find in each.
//
//   YcsbRecords records({.loaded = 1000, .capacity = 2000, .value_bytes = 100, .seed = 1});
//   YcsbKey key = records.key(n);
//   YcsbWrite write = records.begin_write(n);
//   records.make_value(n, write.version, &value);   // then it is put
//   records.end_write(n, write);
//
//   uint32_t oldest = records.oldest(n);            // then it is read
//   bool right = records.check(n, oldest, value);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/column.h"

namespace stride::benchmark {

// "user" and 20 digits, in the style of YCSB: the records' numbers, hashed, so that they come in a
// random order.
struct YcsbKey {
  static constexpr uint32_t bytes = 24;
  Bytes view() const { return as_bytes(std::string_view(text, bytes)); }
  char text[bytes];
};

struct YcsbWrite {
  uint32_t version;  // 1 for the first
  bool alone;        // no other write of the record was under way when this began
};

struct YcsbRecordsOptions {
  uint64_t loaded = 0;         // records that are there from the start
  uint64_t capacity = 0;       // most records, with those that are inserted
  uint32_t value_bytes = 100;  // min_value_bytes at least
  uint64_t seed = 1;
  bool scans = false;  // loaded_from() is needed
};

// Thread-safe, for up to max_threads of them.
class YcsbRecords {
 public:
  static constexpr uint32_t min_value_bytes = 16;  // a record's number and version
  static constexpr uint32_t max_threads = 255;

  explicit YcsbRecords(const YcsbRecordsOptions& options);

  YcsbKey key(uint64_t record) const;
  uint32_t value_bytes() const { return options_.value_bytes; }
  uint32_t record_bytes() const { return YcsbKey::bytes + options_.value_bytes; }

  // The first bytes say which record and version it is, and all others follow from these.
  void make_value(uint64_t record, uint32_t version, std::string* value) const;

  // Around each write of a record.
  YcsbWrite begin_write(uint64_t record);
  void end_write(uint64_t record, const YcsbWrite& write);

  // The oldest version that a read that begins now may find: the last one that was written while no
  // other write of the record was under way, for of several at once any may win. 0: not there yet.
  uint32_t oldest(uint64_t record) const;
  // Whether a read may find this: the record's, of a version from `oldest` up to the last begun.
  bool check(uint64_t record, uint32_t oldest, Bytes value) const;
  // The same for a row that a scan has found. `record` becomes its number.
  bool check_row(Bytes key, Bytes value, uint64_t* record) const;

  // A new record's number, or capacity() where there is no room for one. It is visible once it and
  // all before it are written.
  uint64_t begin_insert();
  void end_insert(uint64_t record, const YcsbWrite& write);
  // Records below this number are in the store.
  uint64_t visible() const { return visible_.load(std::memory_order_acquire); }
  uint64_t capacity() const { return options_.capacity; }
  uint64_t loaded() const { return options_.loaded; }
  // How many of the loaded records have this one's key or a greater one.
  uint64_t loaded_from(uint64_t record) const;

 private:
  uint64_t hash(uint64_t record) const;
  bool is_value(uint64_t record, uint32_t version, Bytes value) const;

  YcsbRecordsOptions options_;
  // A word for each record: writes under way (8 bits), the last version begun (28), the oldest that
  // may be found (28).
  std::unique_ptr<std::atomic<uint64_t>[]> states_;
  std::atomic<uint64_t> next_, visible_;
  std::vector<uint64_t>
      sorted_;  // hashes of the loaded records, which are in the order of the keys
};

}  // namespace stride::benchmark
