#include "gpu/match/match_layout.h"

#include <algorithm>

namespace stride {

MatchHeader place_match_arrays(uint32_t address_bits, uint32_t prefixes, uint32_t boundaries,
                               std::span<MatchLevel> levels) {
  uint32_t numbers = prefixes;  // that entries have
  for (const MatchLevel& level : levels) numbers = std::max(numbers, level.nodes);
  MatchHeader header{};
  header.magic = match_magic;
  header.levels = static_cast<uint32_t>(levels.size());
  header.address_bits = address_bits;
  header.prefixes = prefixes;
  header.boundaries = boundaries;
  header.entry_bytes = numbers < end_of_narrow_entries ? 3 : 4;
  uint64_t end = align_match(sizeof(MatchHeader) + levels.size() * sizeof(MatchLevel));
  auto place = [&](uint64_t bytes) {
    uint64_t at = end;
    end = align_match(at + bytes);
    return at;
  };
  for (MatchLevel& level : levels) {
    if (level.kind == MatchKind::bitmap) {
      level.blocks_offset = place(level.nodes * blocks_of(level.stride) * sizeof(MatchBlock));
    } else {
      level.starts_offset = place((level.nodes + uint64_t{1}) * sizeof(uint32_t));
      level.slots_offset = place((level.entries + uint64_t{slots_past_list}) * sizeof(uint16_t));
    }
    level.entries_offset = place(level.entries * uint64_t{header.entry_bytes} + 1);
  }
  header.image_bytes = end;
  return header;
}

}  // namespace stride
