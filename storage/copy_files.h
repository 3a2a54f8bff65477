// Copies several files at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "storage/status.h"

namespace stride {

// Calls copy(i) for each i below `files`, several at once, until one of them fails or the calling
// thread's WorkWatch is stopped. copied: null, or what counts those that are copied.
Status copy_files(uint64_t files, std::atomic<uint64_t>* copied,
                  const std::function<Status(uint64_t)>& copy);

}  // namespace stride
