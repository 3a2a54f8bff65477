// Builds the filter of a segment's keys on all threads.
//
//   std::span<std::byte> blocks = writer.add_section(SectionType::key_filter,
//                                                    KeyFilter::bytes_for(keys.size));
//   build_filter(keys, backend, blocks);
#pragma once

#include <cstddef>
#include <span>

#include "gpu/backend.h"
#include "storage/column.h"

namespace stride {

// Preconditions: blocks are KeyFilter::bytes_for(keys.size) zeros, at a multiple of 64, and so many
// keys fit a segment. Takes up to 64 MiB of memory meanwhile. The same bytes for any number of
// threads. May throw std::bad_alloc.
void build_filter(const PackedColumn& keys, Backend& backend, std::span<std::byte> blocks);

}  // namespace stride
