// The one checksum of all file formats: XXH3, 64 bits, seed 0.
#pragma once

#include <cstdint>

#include "storage/column.h"

namespace stride {

uint64_t checksum(Bytes bytes);

}  // namespace stride
