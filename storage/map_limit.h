// How many memory mappings a process may have is a limit of its own (vm.max_map_count), which many
// segments reach long before memory is short.
#pragma once

#include <cstdint>
#include <string>

#include "storage/status.h"

namespace stride {

// A memory mapping of this process, for as long as it lives.
class CountedMapping {
 public:
  CountedMapping();
  ~CountedMapping();
  CountedMapping(const CountedMapping&) = delete;
  CountedMapping& operator=(const CountedMapping&) = delete;
};

// Whether so many bytes better share the heap with others than have a mapping of their own: they
// are few, and half of the mappings that the process may have are in use already.
bool belongs_on_heap(uint64_t bytes);

// After a mmap() that failed with ENOMEM: resource_exhausted, with the limit of mappings as the
// cause where that is reached, else that of address space.
Status no_room_for_mapping(const std::string& message);

}  // namespace stride
