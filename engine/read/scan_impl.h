// Ordered reading of one table: from one segment without copying keys or values, or merged.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/merge/merger.h"
#include "engine/monitoring/operation_counters.h"
#include "engine/result_buffer.h"
#include "engine/scan.h"

namespace stride {

class STRIDE_INTERNAL Scan::Impl {
 public:
  virtual ~Impl() = default;
  virtual bool next(ScanBatch* batch) = 0;
  const Status& status() const { return status_; }
  // Nothing follows where it is not ok.
  void end_with(Status status) { status_ = std::move(status); }

  static Impl& of(Scan& scan) { return *scan.impl_; }
  // The counters live as long as this.
  void count_in(OperationCounters& counters) { counters_ = &counters; }
  void count(const ScanBatch& batch) const {
    if (!counters_) return;
    OperationCounters::Slot& slot = counters_->slot();
    slot.add(Count::scan_rows, batch.keys.size);
    slot.add(Count::scan_bytes, batch.keys.bytes() + batch.values.bytes());
  }

 protected:
  Status status_;

 private:
  OperationCounters* counters_ = nullptr;  // null: it is a part of another scan
};

Result<Scan> make_scan(std::shared_ptr<const Version> version, const TableVersion& table,
                       const ScanOptions& options);

}  // namespace stride
