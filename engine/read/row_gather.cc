#include "engine/read/row_gather.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "storage/prefetch.h"

namespace stride {
namespace {

constexpr uint64_t prefetch_distance = 64;

// Copies a row of n bytes; writes up to 63 bytes past its end, which the next row overwrites.
// Precondition: 64 bytes may be read.
void copy_wide(std::byte* to, const std::byte* from, uint64_t n) {
  std::memcpy(to, from, 32);
  if (n <= 32) return;
  std::memcpy(to + 32, from + 32, 32);
  if (n > 64) std::memcpy(to + 64, from + 64, n - 64);
}

std::vector<PackedColumn> values_of(const SegmentList& segments) {
  std::vector<PackedColumn> columns;
  for (const auto& s : segments) columns.push_back(s->values().column);
  return columns;
}

}  // namespace

ColumnGather::ColumnGather(std::vector<PackedColumn> sources, bool in_cache)
    : sources_(std::move(sources)), in_cache_(in_cache) {
  width_ = sources_[0].width;
  fixed_ = std::all_of(sources_.begin(), sources_.end(),
                       [&](const PackedColumn& c) { return c.fixed && c.width == width_; });
  for (const PackedColumn& c : sources_) data_of_.push_back(c.data);
}

uint64_t ColumnGather::fit(std::span<const Location> rows, uint64_t max_bytes) {
  if (fixed_) return std::min<uint64_t>(rows.size(), max_bytes / std::max(width_, 1u) + 1);
  found_.reset(rows.size());
  offsets_.reset(rows.size() + 1);
  uint64_t bytes = offsets_[0] = 0, n = 0;
  wide_ = true;
  while (n < rows.size() && bytes < max_bytes) {
    const PackedColumn& source = sources_[rows[n].index];
    Bytes row = source[rows[n].rank];
    wide_ &= source.data + source.data_bytes - row.data() >= 64;
    found_[n] = row.data();
    offsets_[++n] = bytes += row.size();
  }
  return n;
}

// Rows of `part` to 2 * part - 1 bytes, by two moves that overlap; 0: rows of any size.
template <uint32_t part>
void ColumnGather::copy_fixed(std::span<const Location> rows) {
  const std::byte* const* sources = data_of_.data();
  std::byte* out = data_.data();
  const uint64_t width = width_;
  const bool in_cache = in_cache_;
  auto row = [&](uint64_t i) { return sources[rows[i].index] + rows[i].rank * width; };
  for (uint64_t i = 0; i < rows.size(); ++i, out += width) {
    if (!in_cache && i + prefetch_distance < rows.size()) prefetch(row(i + prefetch_distance));
    const std::byte* from = row(i);
    if (part == 0) {
      std::memcpy(out, from, width);
    } else {
      std::memcpy(out, from, part);
      std::memcpy(out + width - part, from + width - part, part);
    }
  }
}

Column ColumnGather::copy_variable(uint64_t n) {
  data_.reset(offsets_[n] + 64);
  std::byte* const out = data_.data();
  for (uint64_t i = 0; i < n; ++i) {
    if (!in_cache_ && i + prefetch_distance < n) prefetch(found_[i + prefetch_distance]);
    uint64_t bytes = offsets_[i + 1] - offsets_[i];
    if (wide_) {
      copy_wide(out + offsets_[i], found_[i], bytes);
    } else if (bytes) {
      std::memcpy(out + offsets_[i], found_[i], bytes);
    }
  }
  return Column::variable(out, offsets_.data(), n);
}

Column ColumnGather::copy(std::span<const Location> rows) {
  if (!fixed_) return copy_variable(rows.size());
  data_.reset(rows.size() * width_);
  switch (std::bit_floor(width_)) {
    case 0:
      break;
    case 1:
      copy_fixed<1>(rows);
      break;
    case 2:
      copy_fixed<2>(rows);
      break;
    case 4:
      copy_fixed<4>(rows);
      break;
    case 8:
      copy_fixed<8>(rows);
      break;
    case 16:
      copy_fixed<16>(rows);
      break;
    case 32:
      copy_fixed<32>(rows);
      break;
    case 64:
      copy_fixed<64>(rows);
      break;
    default:
      copy_fixed<0>(rows);
      break;
  }
  return Column::fixed(data_.data(), width_, rows.size());
}

std::vector<PackedColumn> keys_of(const SegmentList& segments) {
  std::vector<PackedColumn> columns;
  for (const auto& s : segments) columns.push_back(s->keys());
  return columns;
}

ValueGather::ValueGather(const SegmentList& segments)
    : segments_(segments), gather_(values_of(segments), /*in_cache=*/false) {
  any_shared_ = std::any_of(segments.begin(), segments.end(),
                            [](const auto& s) { return s->values().shared(); });
}

std::span<const Location> ValueGather::positions(std::span<const Location> rows) {
  if (!any_shared_) return rows;
  positions_.reset(rows.size());
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const ValueRows& values = segments_[rows[i].index]->values();
    positions_[i] = {rows[i].index, static_cast<uint32_t>(values.position(rows[i].rank))};
  }
  return {positions_.data(), rows.size()};
}

}  // namespace stride
