#include "engine/build/run_builder.h"

namespace stride {

uint64_t RunBuilder::resident_budget(const PendingEdit& pending) const {
  const uint64_t limit = context_.options.memory_limit_bytes;
  const uint64_t resident = versions_.current()->resident_bytes + pending.resident_bytes +
                            context_.options.memtable_bytes;
  return limit > resident ? limit - resident : 0;
}

}  // namespace stride
