// Work that copies files, while somebody may look how far that is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "engine/backup.h"
#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

// What a copy has done, and is to do. Any thread.
struct CopyCounters {
  std::atomic<uint64_t> files{0}, total_files{0}, total_bytes{0};
};

// Calls work(counters) and returns what it does; where the options ask for it on a thread of its
// own, which is watched.
Status run_copy(const CopyOptions& options, const std::function<Status(CopyCounters*)>& work);

}  // namespace stride
