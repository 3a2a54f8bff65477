// A key column in memory of its own, laid out as a segment stores it.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/bulk_vector.h"
#include "gpu/host/task_pool.h"
#include "storage/column.h"

namespace stride {

class KeyStore {
 public:
  // Rows `order` of `keys`, or all rows where there is no order.
  KeyStore(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order);

  const PackedColumn& column() const { return column_; }
  uint64_t bytes() const;

 private:
  void store_fixed(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order);
  void store_variable(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order);
  template <class Delta>
  void store_rows(TaskPool& pool, const KeyColumn& keys, std::span<const uint32_t> order);

  PackedColumn column_;
  BulkVector<std::byte> data_;
  BulkVector<uint64_t> bases_;
  BulkVector<std::byte> deltas_;
};

}  // namespace stride
