// Scatters columns of any size (gpu/scatter_add.h), on the host or on a device.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/scatter_add.h"
#include "storage/status.h"

namespace stride {

class Scatter {
 public:
  virtual ~Scatter() = default;

  // T[R[i]] += S[i] for each i, or min or max (gpu/scatter_add.h). Columns may each lie in host
  // memory or the device's. invalid_argument: types or sizes that do not go together, or, with
  // OutOfRange::error, an index that is not below into.size. report: null, or what was left out.
  Status apply(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
               const ScatterOptions& options = {}, ScatterReport* report = nullptr);
  // Prepares targets, which may go then, for PreparedScatter::apply(). invalid_argument: as above.
  virtual Result<std::unique_ptr<PreparedScatter>> prepare(const Indexes& targets,
                                                           uint64_t target_count,
                                                           OutOfRange out_of_range) = 0;

 private:
  // As apply(); the arguments were checked, there is at least one source, and the report is
  // empty.
  virtual Status apply_checked(const Numbers& sources, const Indexes& targets,
                               const MutableNumbers& into, const ScatterOptions& options,
                               ScatterReport* report) = 0;
};

}  // namespace stride
