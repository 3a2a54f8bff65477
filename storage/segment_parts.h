// Finds the header, the section table and the footer of a segment's file of which some bytes are
// damaged. Internal to storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/segment_layout.h"
#include "storage/status.h"

namespace stride {

// Which of them the file has as they were written. Where one is damaged it was found out from the
// others, or by changing single bytes until its checksum holds.
struct SegmentParts {
  SegmentLayout layout;
  std::vector<uint64_t> checksums;  // of the blocks, as they were written
  bool has_header = true;
  bool has_tables = true;  // the section table, and the checksums of the blocks
  bool has_footer = true;
};

// Whether the block is as it was written, but for its header or its padding.
bool is_block_whole(const SegmentParts& parts, uint64_t block);

// corruption: too much is damaged, or the file is that of another segment. unsupported_version.
Result<SegmentParts> find_segment_parts(const std::string& path, uint64_t id, Bytes file);

}  // namespace stride
