#include "storage/block_check.h"

#include <algorithm>

namespace stride {

namespace {

std::string name_of(SectionType type) { return "section " + std::string(to_string(type)); }

// Entries [first, end) of a section lie in a block, whole: sections and blocks begin at multiples
// of 64.
struct Entries {
  uint64_t first = 0, end = 0;
  bool empty() const { return first >= end; }
};

Entries entries_in(const SegmentLayout& layout, SectionType type, uint64_t width, uint64_t block) {
  const SectionEntry& section = layout.sections[static_cast<uint32_t>(type)];
  if (!section.type || !width) return {};
  uint64_t first = std::max(block * segment_block_bytes, section.offset);
  uint64_t end = std::min((block + 1) * segment_block_bytes, section.offset + section.bytes);
  if (first >= end) return {};
  return {(first - section.offset) / width, (end - section.offset) / width};
}

// Offsets of a column, as readers take them.
struct OffsetRules {
  const PackedColumn& column;
  SectionType deltas;
  uint64_t max_row_bytes;  // 2^n - 1

  Entries in(const SegmentLayout& layout, uint64_t block) const {
    return column.fixed ? Entries() : entries_in(layout, deltas, column.offsets.delta_width, block);
  }
  // Whether row `row`, which ends at the offset after this one, is as it should be.
  bool holds(uint64_t row) const {
    uint64_t begin = column.offsets[row], end = column.offsets[row + 1];
    return begin <= end && end <= column.data_bytes && end - begin <= max_row_bytes;
  }
  BlockFault fault(const SegmentLayout& layout, uint64_t entry) const {
    uint64_t start = layout.sections[static_cast<uint32_t>(deltas)].offset;
    return {start + entry * column.offsets.delta_width,
            name_of(deltas) + " has an offset that does not fit, of row " + std::to_string(entry)};
  }
};

// Whether all of the offsets ascend. Passes without a branch, for nothing is wrong.
template <class Delta>
bool offsets_hold(const OffsetRules& rules, Entries entries) {
  constexpr uint64_t group = uint64_t{1} << PackedOffsets::group_bits;
  const PackedOffsets& offsets = rules.column.offsets;
  const uint64_t limit = rules.column.data_bytes;
  auto* deltas = static_cast<const Delta*>(offsets.deltas);
  uint64_t before = 0;
  for (uint64_t first = entries.first; first < entries.end;) {
    const uint64_t last = std::min(entries.end, (first / group + 1) * group) - 1;
    const uint64_t base = offsets.bases[first / group];
    bool descends = false;
    Delta lengths = 0;  // all of their bits
    for (uint64_t i = first; i < last; ++i) {
      descends |= deltas[i] > deltas[i + 1];
      lengths |= static_cast<Delta>(deltas[i + 1] - deltas[i]);
    }
    if (descends || lengths > rules.max_row_bytes || base > limit || deltas[last] > limit - base)
      return false;
    const uint64_t begin = base + deltas[first];
    if (first > entries.first && (begin < before || begin - before > rules.max_row_bytes))
      return false;
    before = base + deltas[last];
    first = last + 1;
  }
  return true;
}

bool offsets_hold(const OffsetRules& rules, Entries entries) {
  switch (rules.column.offsets.delta_width) {
    case 2:
      return offsets_hold<uint16_t>(rules, entries);
    case 4:
      return offsets_hold<uint32_t>(rules, entries);
    default:
      return offsets_hold<uint64_t>(rules, entries);
  }
}

std::optional<BlockFault> check_offsets(const SegmentLayout& layout, const OffsetRules& rules,
                                        uint64_t block) {
  Entries entries = rules.in(layout, block);
  if (entries.empty() || offsets_hold(rules, entries)) return {};
  uint64_t entry = entries.first;
  while (entry + 1 < entries.end && rules.holds(entry)) ++entry;
  return rules.fault(layout, entry);
}

// The first number that is not below the limit; `count` where all are.
template <class Number>
uint64_t first_not_below(const std::byte* section, uint64_t first, uint64_t count, uint64_t limit) {
  auto* numbers = reinterpret_cast<const Number*>(section);
  Number largest = 0;  // a pass without a branch, for nothing is wrong
  for (uint64_t i = first; i < count; ++i) largest = std::max(largest, numbers[i]);
  if (largest < limit) return count;
  while (numbers[first] < limit) ++first;
  return first;
}

// Readers take them for rows of the value column.
std::optional<BlockFault> check_numbers(const SegmentLayout& layout, uint64_t block) {
  const ValueRows& values = layout.values;
  if (!values.shared()) return {};
  constexpr SectionType type = SectionType::value_numbers;
  uint64_t width = values.number_width, limit = values.column.size;
  const auto [first, end] = entries_in(layout, type, width, block);
  if (first >= end) return {};
  const std::byte* section = layout.section(type).data();
  uint64_t row = width == 1   ? first_not_below<uint8_t>(section, first, end, limit)
                 : width == 2 ? first_not_below<uint16_t>(section, first, end, limit)
                              : first_not_below<uint32_t>(section, first, end, limit);
  if (row == end) return {};
  return BlockFault{layout.sections[static_cast<uint32_t>(type)].offset + row * width,
                    name_of(type) + " gives row " + std::to_string(row) + " value " +
                        std::to_string(values.position(row)) + " of " + std::to_string(limit)};
}

std::optional<BlockFault> check_kinds(const SegmentLayout& layout, uint64_t block) {
  constexpr SectionType type = SectionType::kinds;
  constexpr uint64_t known = static_cast<uint64_t>(EntryKind::tombstone) + 1;
  const auto [first, end] = entries_in(layout, type, 1, block);
  if (first >= end) return {};
  const std::byte* section = layout.section(type).data();
  uint64_t row = first_not_below<uint8_t>(section, first, end, known);
  if (row == end) return {};
  return BlockFault{layout.sections[static_cast<uint32_t>(type)].offset + row,
                    name_of(type) + " has the unknown entry kind " +
                        std::to_string(static_cast<unsigned>(section[row])) + ", of row " +
                        std::to_string(row)};
}

OffsetRules key_rules(const SegmentLayout& layout) {
  return {layout.keys, SectionType::key_deltas, max_key_bytes};
}
OffsetRules value_rules(const SegmentLayout& layout) {
  return {layout.values.column, SectionType::value_deltas, max_value_bytes};
}

Bytes bases_beside(const SegmentLayout& layout, const OffsetRules& rules, uint64_t block) {
  Entries entries = rules.in(layout, block);
  if (entries.empty()) return {};
  uint64_t first = entries.first >> PackedOffsets::group_bits;
  uint64_t last = (entries.end - 1) >> PackedOffsets::group_bits;
  return {reinterpret_cast<const std::byte*>(rules.column.offsets.bases + first),
          (last - first + 1) * sizeof(uint64_t)};
}

std::optional<BlockFault> check_end(const SegmentLayout& layout, const OffsetRules& rules,
                                    uint64_t block) {
  Entries before = rules.in(layout, block), after = rules.in(layout, block + 1);
  if (before.empty() || after.empty() || rules.holds(before.end - 1)) return {};
  return rules.fault(layout, before.end);
}

}  // namespace

BytesBeside bytes_beside(const SegmentLayout& layout, uint64_t block) {
  return {bases_beside(layout, key_rules(layout), block),
          bases_beside(layout, value_rules(layout), block)};
}

std::optional<BlockFault> fault_in_block(const SegmentLayout& layout, uint64_t block) {
  if (auto fault = check_offsets(layout, key_rules(layout), block)) return fault;
  if (auto fault = check_offsets(layout, value_rules(layout), block)) return fault;
  if (auto fault = check_numbers(layout, block)) return fault;
  return check_kinds(layout, block);
}

std::optional<BlockFault> fault_at_block_end(const SegmentLayout& layout, uint64_t block) {
  if (auto fault = check_end(layout, key_rules(layout), block)) return fault;
  return check_end(layout, value_rules(layout), block);
}

}  // namespace stride
