// What must hold of the bytes of a segment's block besides its checksum, before readers believe
// them: they come from whoever wrote the file. Internal to storage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "storage/segment_layout.h"

namespace stride {

struct BlockFault {
  uint64_t offset;  // in the file
  std::string what;
};

// Bytes of the file beside the block that fault_in_block() reads: they are to match their
// checksums.
struct BytesBeside {
  Bytes key_bases, value_bases;
};
BytesBeside bytes_beside(const SegmentLayout& layout, uint64_t block);

// Checks the block's part of the offsets of keys and values: they ascend and lead to no place
// behind the data, and no row is longer than rows may be. Checks that there are values for its
// numbers of values, and that its entry kinds are known.
std::optional<BlockFault> fault_in_block(const SegmentLayout& layout, uint64_t block);

// Checks the two offsets on both sides of the block's end, where there are such: they ascend too.
std::optional<BlockFault> fault_at_block_end(const SegmentLayout& layout, uint64_t block);

}  // namespace stride
