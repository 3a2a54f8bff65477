#include "engine/read/read_ahead.h"

#include <algorithm>
#include <utility>

namespace stride {

RowReadAhead::RowReadAhead(const Segment& segment, uint64_t first, uint64_t last, bool reverse)
    : mapping_(segment.mapping()),
      rows_(segment.rows()),
      first_(first),
      last_(std::min(last, segment.rows())),
      reverse_(reverse) {
  if (!mapping_ || first_ >= last_) return;
  if (const uint8_t* kinds = segment.kinds())
    sections_.push_back({.bytes = {reinterpret_cast<const std::byte*>(kinds), rows_}, .width = 1});
  add_column(segment.keys());
  if (const ValueRows values = segment.values(); values.shared()) {
    // Which of the values come next only these tell.
    sections_.push_back(
        {.bytes = segment.section(SectionType::value_numbers), .width = values.number_width});
  } else {
    add_column(values.column);
  }
  for (Section& section : sections_)
    section.at = section.asked = offset_of(section, reverse_ ? last_ : first_);
}

void RowReadAhead::add_column(const PackedColumn& c) {
  if (!c.fixed) {
    constexpr uint32_t group_bits = PackedOffsets::group_bits;
    uint64_t bases = ((rows_ >> group_bits) + 1) * sizeof(uint64_t);
    uint64_t deltas = (rows_ + 1) * c.offsets.delta_width;
    sections_.push_back({.bytes = {reinterpret_cast<const std::byte*>(c.offsets.bases), bases},
                         .group_bits = group_bits,
                         .width = sizeof(uint64_t)});
    sections_.push_back({.bytes = {static_cast<const std::byte*>(c.offsets.deltas), deltas},
                         .width = c.offsets.delta_width});
  }
  uint64_t bytes = c.row_bytes();
  if (bytes)
    sections_.push_back({.bytes = {c.data, bytes}, .offsets = c.offsets, .width = c.width});
}

// Offsets that have not been checked make a wrong hint at worst.
uint64_t RowReadAhead::offset_of(const Section& section, uint64_t rank) const {
  uint64_t begin =
      section.offsets.bases ? section.offsets[rank] : (rank >> section.group_bits) * section.width;
  begin = std::min<uint64_t>(begin, section.bytes.size());
  return reverse_ ? section.bytes.size() - begin : begin;
}

void RowReadAhead::ask(const Section& section, uint64_t from, uint64_t to) const {
  uint64_t start = static_cast<uint64_t>(section.bytes.data() - mapping_->bytes().data());
  if (reverse_) {
    uint64_t size = section.bytes.size();
    from = size - std::exchange(to, size - from);
  }
  // What was read a while ago is mostly still there, and to ask for it costs as much as to read it.
  if (mapping_->in_memory(start + from) && mapping_->in_memory(start + to - 1)) return;
  mapping_->will_need({start + from, to - from});
}

void RowReadAhead::advance(Section* section, uint64_t rank, uint64_t rows_left) {
  uint64_t size = section->bytes.size();
  section->asked = std::max(section->asked, section->at);
  section->at = offset_of(*section, rank);
  if (section->asked > section->at + section->ahead / 2) return;
  // Where the last row ends is told by bytes that have not been read yet: an average will do.
  uint64_t left = static_cast<uint64_t>(static_cast<double>(size) * static_cast<double>(rows_left) /
                                        static_cast<double>(rows_));
  if (left) left += left / 8 + section->width;
  uint64_t end = section->at + std::min({section->ahead, left, size - section->at});
  end = std::min(end, section->asked + max_step_bytes);
  if (end <= section->asked) return;
  ask(*section, section->asked, end);
  section->asked = end;
  section->ahead = std::min(max_bytes, section->ahead * 2);
}

void RowReadAhead::advance(uint64_t rank) {
  rank = std::clamp(rank, first_, last_);
  uint64_t rows_left = reverse_ ? rank - first_ : last_ - rank;
  for (Section& section : sections_) advance(&section, rank, rows_left);
}

}  // namespace stride
