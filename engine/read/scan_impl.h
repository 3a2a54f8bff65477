// Ordered reading of one table: from one segment without copying keys or values, or merged.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/merge/merger.h"
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

 protected:
  Status status_;
};

Result<Scan> make_scan(std::shared_ptr<const Version> version, const TableVersion& table,
                       const ScanOptions& options);

}  // namespace stride
