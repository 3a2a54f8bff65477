// Memory at consecutive addresses whose parts lie on several devices: what all of them work on at
// once, each on its own part.
//
//   auto memory = allocate_spread({&first, &second}, bytes);   // half of it on each
//
// Every device uses all of it as its own memory, at the speed of its own where the part is its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/execution_context.h"
#include "storage/status.h"

namespace stride {

// Part i of n begins at or before byte bytes * i / n, as far before it as pages are large. The
// devices outlive the memory. unavailable: one of them is null, the machine has no way between two
// of them, or the memory would be only some pages. resource_exhausted: no room within a budget.
Result<std::unique_ptr<BackendMemory>> allocate_spread(const std::vector<CudaDevice*>& devices,
                                                       uint64_t bytes);
// Whether each of some devices uses the memory of all others.
Result<bool> all_reach_each_other(const std::vector<CudaDevice*>& devices);
// Whether a pointer is to such memory, and a device has a part of it.
bool is_spread_over(const void* p, int device);
// The device of the part where a byte lies; nothing: it is no such memory.
std::optional<int> device_of_part(const void* p);
// How many bytes from `p` on lie in one part. UINT64_MAX: it is no such memory.
uint64_t bytes_to_border(const void* p);

}  // namespace stride
