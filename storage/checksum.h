// The one checksum of all file formats: XXH3, 64 bits, seed 0.
#pragma once

#include <cstdint>

#include "storage/column.h"

namespace stride {

uint64_t checksum(Bytes bytes);
// The checksum of a page of a segment, whose block has one of 64 bits, too.
inline uint32_t page_checksum(Bytes page) { return static_cast<uint32_t>(checksum(page)); }

}  // namespace stride
