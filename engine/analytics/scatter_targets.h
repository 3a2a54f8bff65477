// What a mapping table says: the target of each source (engine/scatter_plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scatter_plan.h"
#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// One number a row, of 32 bits as long as these suffice. The largest number of either width stands
// for none.
class NumberList {
 public:
  uint64_t size() const { return is_wide_ ? wide_.size() : narrow_.size(); }
  // New rows are to be set. Keeps what is there.
  void resize(uint64_t rows) { is_wide_ ? wide_.resize(rows) : narrow_.resize(rows); }
  void widen(Backend& host);
  // Calls body with the rows as uint32_t* or uint64_t*.
  template <class Body>
  void visit(const Body& body) {
    is_wide_ ? body(wide_.data()) : body(narrow_.data());
  }
  Indexes view() const { return is_wide_ ? Indexes::of(wide_) : Indexes::of(narrow_); }

 private:
  BulkVector<uint32_t> narrow_;
  BulkVector<uint64_t> wide_;
  bool is_wide_ = false;
};

struct ScatterTargets {
  NumberList targets;  // of each source; those without one are out of range
  uint64_t target_count = 0;
  ScatterReport report;  // of those without one
  // These are for ScatterPlanTargets::keys.
  std::vector<std::byte> key_data;
  std::vector<uint64_t> key_offsets;

  KeyColumn keys() const {
    return key_offsets.empty()
               ? KeyColumn()
               : KeyColumn::variable(key_data.data(), key_offsets.data(), key_offsets.size() - 1);
  }
};

// sources: null for all rows of the mapping table. on_host: whether they may be read here, for
// messages. host: whose threads do the work.
Status read_scatter_targets(const Snapshot& snapshot, const Table& mapping,
                            const KeyColumn* sources, bool on_host,
                            const ScatterPlanOptions& options, Backend& host,
                            ScatterTargets* result);

}  // namespace stride
