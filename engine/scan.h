// Ordered reading: columnar batches, or one entry at a time.
//
//   Result<Scan> scan = snapshot.scan(table, {.from = "a", .to = "b"});
//   ScanBatch batch;
//   while (scan->next(&batch)) use(batch.keys, batch.values);
//   if (!scan->status().ok()) ...
//
//   Result<Iterator> it = snapshot.iterate(table, {.prefix = "user:"});
//   for (; it->valid(); it->next()) use(it->key(), it->value());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// All bounds hold together; none of them: the whole table.
struct ScanOptions {
  std::optional<std::string> from;    // first key
  std::optional<std::string> to;      // past the last key
  bool from_inclusive = true;
  bool to_inclusive = false;
  std::optional<std::string> prefix;  // only keys that start with it
  bool reverse = false;               // descending
  uint32_t batch_rows = 0;            // most rows a batch; 0: chosen
};

// Row i of values belongs to row i of keys. Views, valid until the next call of next().
struct ScanBatch {
  KeyColumn keys;
  ValueColumn values;
};

// For one thread at a time. Keeps its snapshot's segments alive.
class STRIDE_API Scan {
 public:
  class STRIDE_INTERNAL Impl;
  explicit Scan(std::unique_ptr<Impl> impl);
  Scan(Scan&&) noexcept;
  Scan& operator=(Scan&&) noexcept;
  ~Scan();

  // False at the end, or where status() is not ok.
  bool next(ScanBatch* batch);
  // corruption where damaged bytes were met; what was handed out before is right.
  const Status& status() const;

 private:
  friend class Impl;
  std::unique_ptr<Impl> impl_;
};

// For one thread at a time.
class STRIDE_API Iterator {
 public:
  explicit Iterator(Scan scan);
  bool valid() const { return row_ < batch_.keys.size; }
  void next();
  // Preconditions: valid(). Views, valid until next().
  Bytes key() const { return batch_.keys[row_]; }
  Bytes value() const { return batch_.values[row_]; }
  const Status& status() const { return scan_.status(); }

 private:
  Scan scan_;
  ScanBatch batch_;
  uint64_t row_ = 0;
};

}  // namespace stride
